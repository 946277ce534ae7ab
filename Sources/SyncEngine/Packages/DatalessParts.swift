import Replica
import UbiquityModel

/// The chunks of files whose content is not here, by what stands for them, and what else of a package is not here.
struct DatalessParts: Sendable {
    private struct Key: Hashable, Sendable {
        var revision: RevisionID
        var offset: Int64
        var size: Int64

        init(_ placeholder: Placeholder) {
            revision = placeholder.revision
            offset = placeholder.offset ?? 0
            size = placeholder.size
        }
    }

    /// Files of which nobody has the content, and nobody ever will.
    var lost: Set<InodeKey> = []
    /// Files that stand for a content of another size than it was announced with, and its size.
    var outgrown: [InodeKey: Int64] = [:]
    /// The index that was agreed on, if it has attributes for which there is no room here.
    var agreed: PackageIndex?
    private var parts: [Key: ArraySlice<Manifest.Entry>] = [:]

    /// Which chunks of the package are not here.
    var all: Set<ChunkID> { Set(parts.values.joined().map(\.chunk)) }

    mutating func add(_ placeholder: Placeholder, _ part: ArraySlice<Manifest.Entry>) { parts[Key(placeholder)] = part }

    /// Throws `UploadError.changed` for a file that was not there when they were asked for.
    var chunks: PackageReader.Elsewhere {
        PackageReader.Elsewhere(agreed: agreed) { placeholder in
            guard let part = parts[Key(placeholder)] else { throw UploadError.changed }
            return Array(part)
        }
    }
}
