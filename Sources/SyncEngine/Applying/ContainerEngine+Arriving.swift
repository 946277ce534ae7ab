import Chunking
import EngineCore
import Logging
import Replica
import SystemPackage
import UbiquityModel

/// Small new files that appear with their content: fetched with one request, made beside the tree, synced together and published whole.
/// Otherwise each is put there without it, and filled when somebody asks.
extension ContainerEngine {
    /// Of one request, in bytes: while it is under way the pass waits.
    private static let bytesAtOnce: Int64 = 4 * 1024 * 1024
    /// After a failure nothing is brought for so long: what waits for a server that does not answer is not the pass.
    private static let pauseAfterFailure = Duration.seconds(30)

    func bring(_ arriving: [RemoteItem]) async -> [ItemID: String] {
        let wanted = worthBringing(arriving)
        guard !wanted.isEmpty, now >= bringsAgain else { return [:] }
        let (replica, key, path) = (replica, key, remotePath(of: wanted[0].id).description)
        var files: [ArrivingFile] = []
        do {
            let made = try await BlockingPool.shared.run { try ArrivingFile.make(wanted, in: replica, key) }
            files = made
            guard let first = made.first else { return [:] }
            let contents = JoinedContents(
                made.map { ($0.content, ChunkIndex($0.manifest).entries, $0.manifest.size) }
            )
            let token = meter.begin(first.item.id, path: path, direction: .download, total: contents.size)
            defer { meter.end(token) }
            try await downloader.fetch(contents.entries, into: contents, token: token, written: {})
            try await BlockingPool.shared.run {
                for file in made { try file.content.set(file.item.attributes) }
                try replica.tree.synchronize()
                for file in made { try file.content.waitWritten() }
            }
            return Dictionary(made.map { ($0.item.id, $0.content.name) }) { first, _ in first }
        } catch {
            // They come as all others do, and who needs their content asks for it and is told why it cannot be had.
            logger.debug("nothing comes with its content", metadata: ["why": "\(error)"])
            bringsAgain = now + Self.pauseAfterFailure
            for file in files { synchronizer.device.discard(file.content.name) }
            return [:]
        }
    }

    /// What this device fetches by itself, and as much of the rest as programs are expected to read.
    private func worthBringing(_ arriving: [RemoteItem]) -> [RemoteItem] {
        let kept = Set(arriving.filter(fetchesByItself).map(\.id))
        let others = arriving.filter { !kept.contains($0.id) }
        var expected = readAhead.arrived(in: others.map(\.place.parent))
        var bytes: Int64 = 0
        return arriving.filter { item in
            guard bytes + item.content.size <= Self.bytesAtOnce else { return false }
            if !kept.contains(item.id) {
                guard expected > 0 else { return false }
                expected -= 1
            }
            bytes += item.content.size
            return true
        }
    }
}

/// A new file that is being made whole beside the tree.
private struct ArrivingFile: Sendable {
    var item: RemoteItem
    var content: StagedContent
    var manifest: Manifest

    /// Blocks on the disk. Those whose chunks are not known here, or for which there is no room, are left out.
    static func make(_ items: [RemoteItem], in replica: Replica, _ key: ContainerKey) throws -> [ArrivingFile] {
        var room = try replica.tree.freeBytes() - ContentFiller.roomLeft - ContentFiller.largestWindow
        var files: [ArrivingFile] = []
        do {
            for item in items {
                guard case .file(let file) = item.content, let content = file.content, file.size <= room,
                    let manifest = try replica.database.manifest(content), manifest.isRight(content, file.size, key)
                else { continue }
                room -= file.size
                let staged = StagedContent(try replica.staging.makeFile())
                files.append(ArrivingFile(item: item, content: staged, manifest: manifest))
            }
        } catch {
            for file in files { try? replica.staging.remove(file.content.name) }
            throw error
        }
        return files
    }
}
