import Chunking
import EngineCore
import Replica
import SystemPackage
import UbiquityModel

/// New files that are read while the pass before theirs is at work: of an import, or of what a scan has found.
///
/// 1. `begin` at the start of a pass, with what the next one will have.
/// 2. `use` what was read, before that next one asks what programs have done in between: what they have told of is not used after all.
/// 3. That pass looks at a file, and reads it, as it was then. `end` with the pass.
///
/// Lives on the engine's thread only.
struct LookAhead {
    /// Fewer are read as quickly by the pass itself.
    static let least = 64
    /// Larger ones are better read side by side. In bytes.
    private static let largest: Int64 = 32 * 1024

    typealias Files = [LocalPlace: ReadContent]

    private var task: Task<Files, Never>?
    private(set) var files: Files = [:]
    /// How often something was dropped.
    private(set) var drops = 0

    /// - Parameter tick: what was changed within it is not read.
    mutating func begin(_ places: [LocalPlace], with uploader: Uploader, tick: Duration) {
        guard !places.isEmpty else { return }
        task = Task { await uploader.readAhead(places, upTo: Self.largest, tick) }
    }

    func taken() async -> Files { await task?.value ?? [:] }

    /// - Parameter drops: as it was when they were waited for.
    mutating func use(_ files: Files, _ drops: Int) {
        task = nil
        self.files = drops == self.drops ? files : [:]
    }

    mutating func end() { files = [:] }

    /// The engine itself changes something, of which nobody tells.
    mutating func drop() {
        drops += 1
        task = nil
        files = [:]
    }
}

extension Uploader {
    /// Reads small files that have one name, one after the other: while an engine looks at what it has, it leaves no more than one processor
    /// to this.
    /// - Returns: what could be read, as it was then.
    fileprivate func readAhead(
        _ places: [LocalPlace],
        upTo limit: Int64,
        _ tick: Duration
    ) async -> [LocalPlace: ReadContent] {
        let (replica, key) = (replica, key)
        let read = try? await BlockingPool.shared.run {
            var read: [LocalPlace: ReadContent] = [:]
            var last: (key: InodeKey, folder: OwnedFile)?
            for place in places {
                if last?.key != place.folder {
                    last = (try? Self.folder(place.folder, replica)).map { (place.folder, $0) }
                }
                guard let folder = last?.folder else { continue }
                if let content = try? Self.read(place, in: folder, upTo: limit, tick, replica, key) {
                    read[place] = content
                }
            }
            return read
        }
        // The closure above does not throw, and the pool throws nothing of its own.
        return read ?? [:]
    }

    private static func folder(_ key: InodeKey, _ replica: Replica) throws(Errno) -> OwnedFile {
        OwnedFile(try replica.tree.openFolder(key: key))
    }

    private static func read(
        _ place: LocalPlace,
        in folder: OwnedFile,
        upTo limit: Int64,
        _ tick: Duration,
        _ replica: Replica,
        _ key: ContainerKey
    ) throws -> ReadContent? {
        let file = try replica.tree.openRegular(in: folder.descriptor, place.name)
        let now = EngineView.timeOfDay
        var chunks: [ChunkID: [UInt8]] = [:]
        let reading = try ContentReader.read(file.raw, upTo: limit, key: key, synchronizing: false) { id, bytes in
            chunks[id] = Array(bytes)
        }
        // One that was changed within the tick is read by its pass, which waits for it.
        guard reading.state.linkCount == 1, reading.state.changed.age(at: now) >= tick else { return nil }
        return ReadContent(
            manifest: reading.manifest,
            content: reading.content,
            state: reading.state,
            chunks: chunks
        )
    }
}
