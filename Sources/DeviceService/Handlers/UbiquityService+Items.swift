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

    func itemStatus(_ request: ItemStatusRequest) async -> [PathOutcome<[ItemReport]>] {
        await each(request.paths) { (present, path) async throws(EngineError) in
            var items = [ItemStatus]()
            if !path.isRoot {
                let item = try await present.engine.item(at: path)
                guard item.kind == .folder else { return [Self.report(item, present)] }
                items.append(item)
            }
            items += try await present.engine.items(under: path).filter { $0.path != path }
            return items.map { Self.report($0, present) }
        }
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
            try await present.engine.evict(path).map { outcome in
                let path = present.path(of: outcome.path)
                let refusal = outcome.refusal.map {
                    ControlError(outcome.isTemporary ? .tryAgain : .failed, "\(path)", $0)
                }
                return EvictRequest.Outcome(path: path, refusal: refusal)
            }
        }
    }

    func setPinned(_ request: PinRequest) async -> [PathOutcome<Nothing>] {
        await each(request.paths) { (present, path) async throws(EngineError) in
            try await present.engine.setPinned(request.isPinned, path)
            return Nothing()
        }
    }
}
