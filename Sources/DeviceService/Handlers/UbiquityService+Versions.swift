internal import Glibc
internal import SyncEngine
internal import UbiquityControl
internal import UbiquityModel

extension UbiquityService {
    func conflicts() async throws(ControlError) -> [ConflictReport] {
        try await awaitMounts()
        var result = [ConflictReport]()
        for present in present {
            do throws(EngineError) {
                for conflict in try await present.engine.conflicts() {
                    result.append(
                        ConflictReport(
                            path: present.path(of: conflict.path),
                            versions: conflict.versions.map { VersionReport($0) }
                        )
                    )
                }
            } catch { throw ControlError(present.entry.container, error) }
        }
        return result
    }

    func versions(_ request: VersionsRequest) async throws(ControlError) -> [VersionReport] {
        try await ofItem(request.path) { (present, path) async throws(EngineError) in
            try await present.engine.versions(of: path).map { VersionReport($0) }
        }
    }

    /// A descriptor of the content; the caller closes it.
    func versionContent(_ request: VersionContentRequest) async throws(ControlError) -> Int32 {
        let revision = try await revision(request.version, of: request.path)
        return try await ofItem(request.path) { (present, path) async throws(EngineError) in
            let file = try await present.engine.content(of: path, revision: revision)
            let copy = fcntl(file.descriptor, F_DUPFD_CLOEXEC, 3)
            guard copy >= 0 else { throw .failed(systemMessage(errno)) }
            return copy
        }
    }

    func restoreVersion(_ request: RestoreVersionRequest) async throws(ControlError) {
        let revision = try await revision(request.version, of: request.path)
        try await ofItem(request.path) { (present, path) async throws(EngineError) in
            try await present.engine.restore(path, revision: revision)
        }
    }

    func resolve(_ request: ResolveRequest) async throws(ControlError) {
        let keep: Keep
        switch request.keep {
        case "current": keep = .current
        case "both": keep = .both
        default: keep = .version(try await revision(request.keep, of: request.path))
        }
        try await ofItem(request.path) { (present, path) async throws(EngineError) in
            try await present.engine.resolve(path, keep: keep)
        }
    }

    /// The version that a person means: its id, or a beginning of it that no other has.
    private func revision(_ text: String, of item: ItemArgument) async throws(ControlError) -> RevisionID {
        if let whole = RevisionID(text) { return whole }
        let versions = try await ofItem(item) { (present, path) async throws(EngineError) in
            try await present.engine.versions(of: path)
        }
        let found = versions.filter { !text.isEmpty && $0.revision.description.hasPrefix(text.lowercased()) }
        guard let first = found.first else {
            throw ControlError(
                "\(item.typed)",
                "it has no version \(text)",
                remedy: "`ubiquity versions \(item.typed)` lists them"
            )
        }
        guard found.count == 1 else {
            throw ControlError("\(item.typed)", "\(found.count) versions begin with \(text)")
        }
        return first.revision
    }

    private func ofItem<Value>(
        _ item: ItemArgument,
        _ body: (MountedContainer, ItemPath) async throws(EngineError) -> Value
    ) async throws(ControlError) -> Value {
        let (present, path) = try locate(item)
        do throws(EngineError) { return try await body(present, path) } catch {
            throw ControlError("\(item.typed)", error)
        }
    }
}
