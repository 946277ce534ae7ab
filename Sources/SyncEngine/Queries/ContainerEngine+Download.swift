import CLinux
import CloudClient
import Driver
import EngineCore
import Glibc
import Logging
import Reconciliation
import Replica
import SystemPackage
package import UbiquityModel

/// Bringing whole contents here.
extension ContainerEngine {
    /// Files on their way at the same time.
    private static let width = 16

    /// Fetches everything under a path; returns when it is here.
    package func download(
        _ path: ItemPath,
        progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(EngineError) {
        let wanted = try await walk(path, populating: true).filter(\.state.lacksContent)
        let total = Sizes.sum(wanted.lazy.map(\.state.size))
        var shown = TransferProgress(bytesDone: 0, bytesTotal: total, filesDone: 0, filesTotal: wanted.count)
        var failures: [(ItemPath, FillError)] = []
        await withTaskGroup(of: (group: [Resolved], failures: [(ItemPath, FillError)]).self) { tasks in
            var rest = wanted[...]
            func add() {
                guard let group = SmallFiles.next(of: &rest, Self.contentToFetch) else { return }
                tasks.addTask { (group, await self.bringHere(group)) }
            }
            for _ in 0..<Self.width { add() }
            for await (group, failed) in tasks {
                if !synchronizer.isStopping { add() }
                failures += failed
                shown.filesDone += group.count
                shown.bytesDone = Sizes.sum(shown.bytesDone, Sizes.sum(group.lazy.map(\.state.size)))
                progress(shown)
            }
        }
        // Then that is the reason, whatever each of them says.
        if !failures.isEmpty || shown.filesDone < shown.filesTotal { try requireRunning() }
        guard let (failed, error) = failures.first else { return }
        throw translate(error, failed)
    }

    /// Of a file that may come with others.
    private static func contentToFetch(_ item: Resolved) -> FileContent? {
        guard item.state.kind == .file, let placeholder = item.state.placeholder, item.row != nil,
            case .file(let file)? = item.remote?.content, file.content != nil, file.revision == placeholder.revision
        else { return nil }
        return file
    }

    private func bringHere(_ group: [Resolved]) async -> [(ItemPath, FillError)] {
        if group.count > 1 {
            let small = group.compactMap { item in
                item.remote.flatMap { remote in
                    Self.contentToFetch(item).map {
                        (missing: MissingContent(id: remote.id, place: remote.place, file: $0), place: item.place)
                    }
                }
            }
            do {
                _ = try await bringSmall(small)
            } catch {
                if error.concernsAll {
                    return group.filter { (try? observe($0.place))??.lacksContent != false }.map { ($0.path, error) }
                }
                // One of them keeps the others from coming.
            }
        }
        var failures: [(ItemPath, FillError)] = []
        for item in group {
            if group.count > 1, (try? observe(item.place))??.lacksContent == false { continue }
            if let error = await bringHere(item.place) { failures.append((item.path, error)) }
        }
        return failures
    }

    private func translate(_ error: FillError, _ path: ItemPath) -> EngineError {
        switch error {
        case .cloud(.offline(let why)): .offline(connectionProblem ?? why)
        case .cloud(.stalled(let why)): .stalled(why)
        case .system(.noSpace): .noSpace
        case .system(.stale): .failed("\(path): moved, deleted or replaced meanwhile")
        case .unsent, .wouldWait: .busy("\(path): not yet uploaded by its author")
        case .authorGone(let author):
            .failed("\(path): not uploaded by its author, \(author), which is no device of this account any more")
        case .cloud, .system, .corrupted, .gone, .withdrawn, .superseded: .failed("\(path): \(error.errno)")
        }
    }

    /// Starts bringing a file here that something else waits for, which is looked at again when it is whole.
    func fetchWhole(_ place: LocalPlace, _ key: InodeKey) {
        guard tracker.fetching.insert(key).inserted else { return }
        let newsCount = tracker.newsCount
        Task {
            let error = await self.bringHere(place)
            self.tracker.fetching.remove(key)
            if error == nil, (try? self.observe(place))??.kind == .package {
                // A file that becomes whole tells of it, which a package's file does not in the package's name.
                for work in self.tracker.waitingForContent.removeValue(forKey: key) ?? [] { self.handle(.woken(work)) }
            }
            guard let error, !error.isPassing, let state = (try? self.observe(place)) ?? nil, state.key == key else {
                return
            }
            if state.kind == .package, error.absence != nil, await self.settleParts(of: place, key) { return }
            self.logger.warning(
                "content cannot be fetched",
                metadata: ["path": "\(place.name)", "why": "\(error.errno)"]
            )
            let waiting = self.tracker.noteUndeliverable(key, absence: error.absence, askedAt: newsCount)
            for work in waiting { self.handle(.woken(work)) }
        }
    }

    /// Opens the file through the mount, as a program would, so that the driver, its readers and this share one view of what is
    /// here.
    func bringHere(_ place: LocalPlace) async -> FillError? {
        if (try? observe(place))??.kind == .package { return await bringPackageHere(place) }
        // Once it is unmounted something else may be at its path.
        guard let mount, !synchronizer.isStopping, let path = path(of: place) else { return .system(.stale) }
        let full = Array(mount.mountPoint.utf8) + [UInt8(ascii: "/")] + path.bytes + [0]
        let opened = try? await BlockingPool.shared.run { [ownMount] in
            ownMount.open(full, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
        }
        switch opened {
        // The disk has a renamed file a moment before the kernel shows it in the mount: worth trying again.
        case .failure(.noSuchFileOrDirectory): return .system(.stale)
        case .failure(let error): return .system(error)
        case nil: return .system(.ioError)
        case .success(let opened):
            defer { opened.close() }
            guard let state = (try? observe(place)) ?? nil, state.isDataless, let file = host.filler.openFile(state.key)
            else { return nil }
            return await host.filler.fetchWhole(file)
        }
    }
}
