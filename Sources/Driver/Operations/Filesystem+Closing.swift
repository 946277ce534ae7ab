import Replica
import Synchronization
import SystemPackage

/// A mount that has no more to show: signed out.
extension Filesystem {
    /// From now on programs are refused every lookup, open and listing. What they have open goes on; whoever waits is told.
    func closeToPrograms() {
        isClosed.store(true, ordering: .sequentiallyConsistent)
        deferrals.endAll(.permissionDenied)
        forgetEntries()
    }

    /// The kernel answers lookups from what it remembers, and for ever, unless it is told to ask again.
    private func forgetEntries() {
        notices.push(.allEntries)
        // For kernels that cannot forget all at once. With a name in the root goes what lies below it, but for what programs are in.
        let (inRoot, others) = table.all.reduce(into: ([Invalidations.Notice](), [Invalidations.Notice]())) {
            (result, node) in
            guard let link = node.link, let folder = table.node(link.parent), folder.id != NodeTable.stagingID,
                node.id > NodeTable.stagingID
            else { return }
            let notice = Invalidations.Notice.entry(folder: folder.id, name: link.name)
            if folder.id == NodeTable.rootID { result.0.append(notice) } else { result.1.append(notice) }
        }
        for notice in inRoot + others { notices.push(notice) }
    }
}
