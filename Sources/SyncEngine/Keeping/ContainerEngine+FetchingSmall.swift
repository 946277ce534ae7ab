import Driver
import EngineCore
import Logging
import Replica
import SystemPackage
import UbiquityModel

/// Small files that come here by themselves come many with one request, and become whole with one sync of the disk.
extension ContainerEngine {
    /// - Returns: whether to go on with others.
    func bringTogether(_ missing: [MissingContent], isPinned: Bool) async -> Bool {
        let bytes = Sizes.sum(missing.lazy.map(\.file.size))
        guard mayFetch, hasRoom(for: bytes, isPinned: isPinned), let mount else { return false }
        let places = placesToFill(missing)
        let (replica, filler) = (replica, host.filler)
        keeping.room.underWay = Sizes.sum(keeping.room.underWay, bytes)
        defer { keeping.room.underWay = max(0, keeping.room.underWay - bytes) }
        var accepted: [PlaceholderFile] = []
        defer { filler.endAhead(accepted) }
        do {
            let found = try await BlockingPool.shared.run { try SmallFile.find(places, mount, replica) }
            accepted = filler.beginAhead(found.map(\.file))
            let wanted = Set(accepted.map(ObjectIdentifier.init))
            let files = found.filter { wanted.contains(ObjectIdentifier($0.file)) }
            // Those that somebody else is fetching come by that.
            guard let first = files.first else { return true }
            let contents = JoinedContents(
                files.map { ($0.file, ChunkIndex($0.manifest).entries, $0.manifest.size) },
                written: filler.served
            )
            let path = remotePath(of: first.item).description
            let token = meter.begin(first.item, path: path, direction: .download, total: contents.size)
            defer { meter.end(token) }
            try await downloader.fetch(contents.entries, into: contents, token: token, written: {})
            try await filler.finish(files.map(\.file))
            keeping.room.localBytes = Sizes.sum(keeping.room.localBytes, contents.size)
            return true
        } catch {
            let failure = error as? FillError ?? .system(error as? Errno ?? .ioError)
            guard goesOn(after: failure, missing.first?.place.name) else { return false }
        }
        // One of them keeps the others from coming.
        filler.endAhead(accepted)
        accepted = []
        for one in missing {
            guard await bring(one, isPinned: isPinned) else { return false }
        }
        return true
    }

    /// Those that are just about to appear are left out.
    func placesToFill(_ missing: [MissingContent]) -> [(missing: MissingContent, place: LocalPlace)] {
        keeping.isSearchPopulating = true
        defer { keeping.isSearchPopulating = false }
        let places = missing.compactMap { one in placeToFill(one).map { (one, $0) } }
        recordPopulated()
        return places
    }
}

/// A small dataless file whose content is about to be fetched.
private struct SmallFile: Sendable {
    var item: ItemID
    var file: PlaceholderFile
    var manifest: Manifest

    /// Blocks on the disk. Those that are whole or have another content by now, or whose chunks are not known here, are left out.
    static func find(
        _ places: [(missing: MissingContent, place: LocalPlace)],
        _ mount: Mount,
        _ replica: Replica
    ) throws -> [SmallFile] {
        try places.compactMap { missing, place in
            guard let content = missing.file.content, let manifest = try replica.database.manifest(content),
                manifest.size == missing.file.size
            else { return nil }
            let folder = try replica.tree.openFolder(key: place.folder)
            guard let file = try mount.placeholder(in: folder.raw, place.name, missing.file.revision),
                file.placeholder.size == manifest.size
            else { return nil }
            return SmallFile(item: missing.id, file: file, manifest: manifest)
        }
    }
}
