import UbiquityModel

/// Acts and answers in a few words, for a story.
struct SimNote: CustomStringConvertible {
    let description: String

    init(_ mutation: Mutation) {
        switch mutation {
        case .publish(_, _, let name, let expecting):
            description = expecting == .absent ? "puts \(name) there" : "replaces \(name)"
        case .replacePackage(_, _, let name, _, _): description = "exchanges \(name)"
        case .removePackage(_, let name, _, _, _): description = "takes \(name) away"
        case .remove(_, let name, _, _): description = "takes \(name) away"
        case .move(_, let name, _, let target, _): description = "moves \(name) to \(target)"
        case .setAttributes(_, let name, _, _, _, _): description = "sets attributes of \(name)"
        }
    }

    init(_ changes: SyncedChanges) {
        let rows = changes.upserts.map { "\($0.place.name) [\($0.id.description.suffix(4))]" }
        let removals = changes.removals.map { "no [\($0.description.suffix(4))]" }
        description = (rows + removals).joined(separator: ", ")
    }

    init(_ result: Result<MutationResult, MutationFailure>) {
        switch result {
        case .success(let result): description = result.isUnchanged ? "done" : "done, and written to"
        case .failure(let failure): description = "\(failure)"
        }
    }

    init(_ operation: ItemOperation) {
        let item = operation.item.description.suffix(4)
        description = "\(Self.words(operation.action)) [\(item)]"
    }

    private static func words(_ action: ItemOperation.Action) -> String {
        switch action {
        case .create(let place, _, _, _, _): "new \(place.name) in \(place.parent.description.suffix(4))"
        case .announce(let place, _, _): "announced \(place.name)"
        case .edit(_, let content, _, _, _): "edit\(words(content))"
        case .move(let place): "move to \(place.name) in \(place.parent.description.suffix(4))"
        case .setAttributes: "attributes"
        case .delete: "deletion"
        case .revive(let place, _): "revival at \(place.name)"
        case .resolve: "resolution"
        case .discard: "discarded versions"
        case .restore: "restoration"
        case .undelete: "undeletion"
        }
    }

    private static func words(_ content: ItemContent) -> String {
        switch content {
        case .file(let file): " revision \(file.revision.description.suffix(4))"
        case .symlink(let target): " to \(String(decoding: target, as: UTF8.self))"
        case .folder: ""
        }
    }

    init(_ outcome: OperationOutcome) {
        switch outcome {
        case .committed(let item):
            description = "now \(item.place.name)\(Self.words(item.content))\(item.isDeleted ? ", deleted" : "")"
        case .missingChunks: description = "chunks are missing"
        case .nameTaken(let other): description = "name taken by \(other.description.suffix(4))"
        case .superseded(let item): description = "superseded by \(item.content.revision?.description.suffix(4) ?? "")"
        case .parentMissing: description = "no such folder"
        case .notEmpty: description = "not empty"
        case .cycle: description = "a circle"
        case .noSuchItem: description = "no such item"
        case .quotaExceeded: description = "over quota"
        case .invalid(let why): description = why
        case .skipped: description = "skipped"
        }
    }
}
