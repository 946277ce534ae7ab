import Glibc
import Replica
import SystemPackage
import UbiquityModel

/// Requests of the apply threads, as they arrive: the mutation at hand is carried out here, if the request is the one it was meant to
/// become. The thread learns the outcome from its `Acting`; the kernel gets EBUSY for any failure, which it never repeats.
extension Filesystem {
    func applyRename(
        _ source: Node,
        _ name: UnsafePointer<CChar>,
        _ target: Node,
        _ newName: UnsafePointer<CChar>,
        _ acting: Acting
    ) throws(Errno) {
        let sourceName = try self.name(name)
        let targetName = try self.name(newName)
        try settle(acting) { () throws(MutationFailure) in
            switch acting.mutation {
            case .publish(let staged, let parent, let itemName, let expecting):
                guard source.id == NodeTable.stagingID, sourceName.description == staged, target.key == parent,
                    targetName == itemName
                else { throw .stale }
                let folder = try failing { () throws(Errno) in try descriptor(of: target) }
                return try publish(sourceName, parent, folder, itemName, expecting)
            case .move(let fromParent, let fromName, let toParent, let toName, let expecting):
                guard source.key == fromParent, sourceName == fromName, target.key == toParent, targetName == toName
                else {
                    throw .stale
                }
                let from = try failing { () throws(Errno) in try descriptor(of: source) }
                let to = try failing { () throws(Errno) in try descriptor(of: target) }
                return try relocation((fromParent, from, fromName), (toParent, to, toName), expecting)
            case .replacePackage(let staged, let parent, let itemName, let expecting, let isPatient):
                guard source.id == NodeTable.stagingID, sourceName.description == staged, target.key == parent,
                    targetName == itemName
                else { throw .stale }
                let folder = try failing { () throws(Errno) in try descriptor(of: target) }
                return try replacePackage(sourceName, parent, folder, itemName, expecting, isPatient: isPatient)
            case .removePackage(let parent, let itemName, let expecting, let isPatient, let staged):
                guard target.id == NodeTable.stagingID, targetName.description == staged, source.key == parent,
                    sourceName == itemName
                else { throw .stale }
                let folder = try failing { () throws(Errno) in try descriptor(of: source) }
                return try removePackage(targetName, parent, folder, itemName, expecting, isPatient: isPatient)
            case .remove, .setAttributes, nil:
                throw .stale
            }
        }
    }

    func applyRemoval(_ folder: Node, _ name: UnsafePointer<CChar>, _ acting: Acting) throws(Errno) {
        let itemName = try self.name(name)
        try settle(acting) { () throws(MutationFailure) in
            guard case .remove(let parent, let expectedName, let expecting, let isFolder) = acting.mutation,
                folder.key == parent, itemName == expectedName
            else { throw .stale }
            let descriptor = try failing { () throws(Errno) in try self.descriptor(of: folder) }
            return try removal(parent, descriptor, itemName, expecting, isFolder: isFolder)
        }
    }

    func applyAttributes(
        _ request: Request,
        _ node: Node,
        _ wanted: WantedAttributes,
        _ acting: Acting
    ) throws(Errno) {
        guard wanted.size == nil else { throw .notPermitted }
        try applyStep(node, acting) { () throws(Errno) in try change(node, wanted, isReported: false) }
        request.reply(attributes: try status(of: node), timeout: Self.forever)
    }

    /// One of the steps of `Mutation.setAttributes`: each is checked against what the one before left.
    func applyStep(_ node: Node, _ acting: Acting, _ act: () throws(Errno) -> Void) throws(Errno) {
        try settle(acting) { () throws(MutationFailure) in
            guard case .setAttributes = acting.mutation, let expected = acting.expected, node.key == expected.key else {
                throw .stale
            }
            if let failure = node.beginHold(alone: false) { throw failure }
            defer { for waiting in node.endHold(.free) { worker.run(waiting) } }
            return try failing { () throws(Errno) -> MutationResult in
                let descriptor = try descriptor(of: node)
                guard expected.describes(try replica.tree.observe(descriptor: descriptor.raw)) else { throw .stale }
                try act()
                let after = try replica.tree.observe(descriptor: descriptor.raw)
                acting.expected = LocalEvidence(after)
                return MutationResult(state: after)
            }
        }
    }

    private func settle(
        _ acting: Acting,
        _ act: () throws(MutationFailure) -> MutationResult
    ) throws(Errno) {
        do throws(MutationFailure) {
            acting.outcome = .success(try act())
        } catch {
            acting.outcome = .failure(error)
            throw .resourceBusy
        }
    }
}
