internal import SyncEngine
internal import UbiquityControl
internal import UbiquityModel

extension UbiquityService {
    func deleted() async throws(ControlError) -> [DeletedReport] {
        try await allDeleted().map { present, item in
            let kind =
                switch item.item.content.kind {
                case .file: "file"
                case .folder: "folder"
                case .symlink: "symlink"
                case .package: "package"
                }
            return DeletedReport(
                id: item.item.id.description,
                container: present.entry.container,
                path: item.path,
                deleted: item.deleted.nanoseconds,
                device: item.device,
                kind: kind,
                size: item.item.content.size
            )
        }
    }

    func undelete(_ request: UndeleteRequest) async -> [PathOutcome<Nothing>] {
        var result = [PathOutcome<Nothing>]()
        for text in request.items {
            do throws(ControlError) {
                let found = try await allDeleted().filter {
                    !text.isEmpty && $0.1.item.id.description.hasPrefix(text.lowercased())
                }
                guard let (present, item) = found.first else {
                    throw ControlError(
                        text,
                        "no deleted item has this id",
                        remedy: "`ubiquity deleted list` lists them"
                    )
                }
                guard found.count == 1 else {
                    throw ControlError(text, "\(found.count) deleted items' ids begin with it")
                }
                do throws(EngineError) { try await present.engine.undelete(item.item.id) } catch {
                    throw ControlError(text, error)
                }
                result.append(PathOutcome(ControlPath(text), Nothing()))
            } catch {
                result.append(PathOutcome(ControlPath(text), error))
            }
        }
        return result
    }

    func heldDeletions(_ request: HeldDeletionsRequest) async throws(ControlError) {
        var heldAny = false
        for present in present where await present.engine.status().heldDeletionCount > 0 {
            heldAny = true
            do throws(EngineError) {
                if request.confirms {
                    await present.engine.confirmDeletions()
                } else {
                    try await present.engine.undoDeletions()
                }
            } catch { throw ControlError(present.entry.container, error) }
        }
        if !heldAny { throw ControlError("deleted", "no deletions are held") }
    }

    private func allDeleted() async throws(ControlError) -> [(MountedContainer, DeletedItem)] {
        var result = [(MountedContainer, DeletedItem)]()
        for present in present {
            do throws(EngineError) {
                for item in try await present.engine.deleted() { result.append((present, item)) }
            } catch {
                throw ControlError(present.entry.container, error)
            }
        }
        return result
    }
}
