import Chunking
import Driver
import EngineCore
import Logging
import Replica
import SystemPackage
import UbiquityModel

/// Small files of which many are wanted come with one request, and become whole with one sync of the disk.
extension ContainerEngine {
    /// Those that come here by themselves.
    /// - Returns: whether to go on with others.
    func bringTogether(_ missing: [MissingContent], isPinned: Bool) async -> Bool {
        let bytes = Sizes.sum(missing.lazy.map(\.file.size))
        guard mayFetch, hasRoom(for: bytes, isPinned: isPinned) else { return false }
        let places = placesToFill(missing)
        keeping.room.underWay = Sizes.sum(keeping.room.underWay, bytes)
        let failure: FillError?
        do throws(FillError) {
            keeping.room.localBytes = Sizes.sum(keeping.room.localBytes, try await bringSmall(places))
            failure = nil
        } catch { failure = error }
        keeping.room.underWay = max(0, keeping.room.underWay - bytes)
        if let failure { guard goesOn(after: failure, missing.first?.place.name) else { return false } }
        // What was left out, or one of them has kept the others from coming.
        for one in missing where ((try? replica.database.missingContent(one.id)) ?? nil) != nil {
            guard await bring(one, isPinned: isPinned) else { return false }
        }
        return true
    }

    /// Those that are not dataless any more, and those that somebody else is fetching, are left out.
    /// - Returns: how many bytes have come.
    func bringSmall(_ places: [(missing: MissingContent, place: LocalPlace)]) async throws(FillError) -> Int64 {
        guard let mount else { throw .system(.stale) }
        let (replica, key, filler) = (replica, key, host.filler)
        var accepted: [PlaceholderFile] = []
        defer { filler.endAhead(accepted) }
        do {
            let found = try await BlockingPool.shared.run { try SmallFile.find(places, mount, replica, key) }
            accepted = filler.beginAhead(found.map(\.file))
            let wanted = Set(accepted.map(ObjectIdentifier.init))
            let files = found.filter { wanted.contains(ObjectIdentifier($0.file)) }
            guard let first = files.first else { return 0 }
            let contents = JoinedContents(
                files.map { ($0.file, ChunkIndex($0.manifest).entries, $0.manifest.size) },
                written: filler.served
            )
            let path = remotePath(of: first.item).description
            let token = meter.begin(first.item, path: path, direction: .download, total: contents.size)
            defer { meter.end(token) }
            try await downloader.fetch(contents.entries, into: contents, token: token, written: {})
            try await filler.finish(files.map(\.file))
            return contents.size
        } catch {
            throw error as? FillError ?? .system(error as? Errno ?? .ioError)
        }
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
        _ replica: Replica,
        _ key: ContainerKey
    ) throws -> [SmallFile] {
        try places.compactMap { missing, place in
            guard let content = missing.file.content, let manifest = try replica.database.manifest(content),
                manifest.isRight(content, missing.file.size, key)
            else { return nil }
            let folder = try replica.tree.openFolder(key: place.folder)
            guard let file = try mount.placeholder(in: folder.raw, place.name, missing.file.revision),
                file.placeholder.size == manifest.size
            else { return nil }
            return SmallFile(item: missing.id, file: file, manifest: manifest)
        }
    }
}
