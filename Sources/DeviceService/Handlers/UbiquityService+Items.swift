internal import Logging
internal import SyncEngine
internal import UbiquityControl
internal import UbiquityModel

extension UbiquityService {
    /// Does the same with each path; each has an outcome of its own.
    private func each<Value: Codable & Sendable>(
        _ paths: [ItemArgument],
        _ body: (MountedContainer, ItemPath) async throws(EngineError) -> Value
    ) async -> [PathOutcome<Value>] {
        var result = [PathOutcome<Value>]()
        for argument in paths {
            do throws(ControlError) {
                let (present, path) = try locate(argument)
                do throws(EngineError) {
                    result.append(PathOutcome(argument.typed, try await body(present, path)))
                } catch {
                    throw ControlError("\(argument.typed)", error)
                }
            } catch {
                result.append(PathOutcome(argument.typed, error))
            }
        }
        return result
    }

    // MARK: - Status

    func itemStatus(_ request: ItemStatusRequest) async -> [PathOutcome<[ItemReport]>] {
        var outcomes = [PathOutcome<[ItemReport]>]()
        var room = max(1, request.limit ?? .max)
        for (index, argument) in request.paths.enumerated() {
            let outcome = await itemStatus(argument, after: index == 0 ? request.after : nil, limit: room)
            outcomes.append(outcome)
            room -= max(1, outcome.value?.count ?? 0)
            guard outcome.next == nil, room > 0 else { break }
        }
        return outcomes
    }

    private func itemStatus(
        _ argument: ItemArgument,
        after last: ControlPath?,
        limit: Int
    ) async -> PathOutcome<[ItemReport]> {
        do throws(ControlError) {
            let (present, path) = try locate(argument)
            var after: ItemPath?
            if let last { after = try locate(ItemArgument(typed: argument.typed, path: last)).1 }
            do throws(EngineError) {
                let (items, rest) = try await look(under: path, after: after, limit: limit, present)
                var outcome = PathOutcome(argument.typed, items.map { Self.report($0, present) })
                if let rest, let last = items.last {
                    keep(rest, after: last.path, under: path, present)
                    outcome.next = present.path(of: last.path)
                }
                return outcome
            } catch {
                throw ControlError("\(argument.typed)", error)
            }
        } catch {
            return PathOutcome(argument.typed, error)
        }
    }

    /// An item, and what lies in it.
    /// - Returns: `rest` goes on behind them; `nil` at the end.
    private func look(
        under path: ItemPath,
        after last: ItemPath?,
        limit: Int,
        _ present: MountedContainer
    ) async throws(EngineError) -> (items: [ItemStatus], rest: ItemWalk?) {
        var items = [ItemStatus]()
        if last == nil, !path.isRoot {
            let item = try await present.engine.item(at: path)
            guard item.kind == .folder else { return ([item], nil) }
            items.append(item)
        }
        let walk: ItemWalk
        if let last, let resting = takeWalk(after: last, under: path, present) {
            walk = resting
        } else {
            walk = try await present.engine.beginWalk(under: path, after: last)
        }
        let (inside, rest) = try await present.engine.items(continuing: walk, limit: limit - items.count)
        return (items + inside, rest)
    }

    /// A look through a folder that goes on when the next part of it is asked for: a folder of a million names is not listed anew for each
    /// part. For a moment only: it may have all these names, and whoever asked may have gone.
    struct RestingWalk {
        let walk: ItemWalk
        let container: String
        let folder: ItemPath
        let last: ItemPath
        let timer: Task<Void, Never>
    }

    private static let restingTime = Duration.seconds(10)

    private func keep(_ walk: ItemWalk, after last: ItemPath, under folder: ItemPath, _ present: MountedContainer) {
        restingWalk?.timer.cancel()
        let timer = Task {
            do { try await Task.sleep(for: Self.restingTime) } catch { return }
            self.restingWalk = nil
        }
        restingWalk = RestingWalk(
            walk: walk,
            container: present.entry.container,
            folder: folder,
            last: last,
            timer: timer
        )
    }

    private func takeWalk(after last: ItemPath, under folder: ItemPath, _ present: MountedContainer) -> ItemWalk? {
        guard let resting = restingWalk, resting.container == present.entry.container, resting.folder == folder,
            resting.last == last
        else { return nil }
        resting.timer.cancel()
        restingWalk = nil
        return resting.walk
    }

    private static func report(_ item: ItemStatus, _ present: MountedContainer) -> ItemReport {
        let kind: String? =
            switch item.kind {
            case .file: "file"
            case .folder: "folder"
            case .symlink: "symlink"
            case .package: "package"
            case nil: nil
            }
        return ItemReport(
            path: present.path(of: item.path),
            kind: kind,
            state: item.state.rawValue,
            conflicts: item.conflictCount,
            percent: item.percent,
            size: item.sizeBytes,
            localBytes: item.localBytes,
            revision: item.revision?.description,
            isPinned: item.isPinned,
            error: item.error,
            reason: item.reason ?? item.awaitedFrom.map { "not yet uploaded by \($0)" },
            isAwaited: item.awaitedFrom != nil
        )
    }

    // MARK: - Content

    func download(
        _ request: DownloadRequest,
        progress: @escaping @Sendable (ControlProgress) -> Void
    ) async -> [PathOutcome<Nothing>] {
        await each(request.paths) { (present, path) async throws(EngineError) in
            if request.waits {
                try await present.engine.download(path) { progress(ControlProgress("downloading", $0)) }
                return Nothing()
            }
            // Known to be wrong now is better told now.
            if !path.isRoot { _ = try await present.engine.item(at: path) }
            let logger = logger
            Task {
                do throws(EngineError) { try await present.engine.download(path) { _ in } } catch {
                    logger.warning(
                        "not downloaded",
                        metadata: ["path": "\(present.path(of: path))", "why": "\(error)"]
                    )
                }
            }
            return Nothing()
        }
    }

    func evict(_ request: EvictRequest) async -> [PathOutcome<[EvictRequest.Outcome]>] {
        await each(request.paths) { (present, path) async throws(EngineError) in
            let files = try await present.engine.evict(path)
            var outcomes = [EvictRequest.Outcome]()
            for file in files {
                guard let refusal = file.refusal else { continue }
                let path = present.path(of: file.path)
                let error = ControlError(file.isTemporary ? .tryAgain : .failed, "\(path)", refusal)
                outcomes.append(EvictRequest.Outcome(path: path, refusal: error))
            }
            let evicted = files.count - outcomes.count
            if evicted > 0 { outcomes.append(EvictRequest.Outcome(path: present.path(of: path), evicted: evicted)) }
            return outcomes
        }
    }

    func setPinned(_ request: PinRequest) async -> [PathOutcome<Nothing>] {
        await each(request.paths) { (present, path) async throws(EngineError) in
            try await present.engine.setPinned(request.isPinned, path)
            return Nothing()
        }
    }
}
