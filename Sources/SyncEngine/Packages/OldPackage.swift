import Chunking
import Replica
import SystemPackage
import UbiquityModel

/// A package as it is here, which is as it was agreed on, and which another state is about to replace.
struct OldPackage: Sendable {
    /// Open for reading.
    var folder: OwnedFile
    var tree: PackageTree
    var index: PackageIndex
    var chunks: PackageChunks

    /// Its files whose content is here, with their chunks.
    fileprivate var whole: [(entry: PackageTree.Entry, chunks: ArraySlice<Manifest.Entry>)] {
        let entries = Dictionary(tree.entries.map { ($0.element.path, $0) }) { first, _ in first }
        return index.files.compactMap { element, offset in
            guard let entry = entries[element.path], entry.state.kind == .file, !entry.state.isDataless,
                let chunks = chunks.part(from: offset, size: element.size)
            else { return nil }
            return (entry, chunks)
        }
    }
}

/// Where the files of a package's new state come from.
struct PackageSources {
    private var linked: [ItemPath: ItemPath] = [:]
    /// Files that are not here in the old state.
    private var dataless: Set<ItemPath> = []
    private var known: Set<ItemPath> = []
    private let isWhole: Bool

    init(_ index: PackageIndex, _ chunks: PackageChunks, _ old: OldPackage?) {
        isWhole = old.map { $0.tree.state.facts?.datalessElements == 0 } ?? false
        guard let old else { return }
        for entry in old.tree.entries {
            known.insert(entry.element.path)
            if entry.state.isDataless { dataless.insert(entry.element.path) }
        }
        // By their first chunk: the same file may have another path now.
        var files: [ChunkID: [(PackageTree.Entry, ArraySlice<Manifest.Entry>)]] = [:]
        for (entry, chunks) in old.whole {
            if let first = chunks.first { files[first.chunk, default: []].append((entry, chunks)) }
        }
        // Each old file goes on as one of the new state: a copy of it that were linked to it, too, would change with it.
        var taken: Set<InodeKey> = []
        var others: [(path: ItemPath, same: [PackageTree.Entry])] = []
        for (element, offset) in index.files {
            guard let part = chunks.part(from: offset, size: element.size), let first = part.first else { continue }
            let same = (files[first.chunk] ?? []).filter { entry, chunks in
                chunks.elementsEqual(part) && Self.isSame(entry.element, element)
            }.map(\.0)
            if let own = same.first(where: { $0.element.path == element.path }) {
                // Two names of one file stay that here.
                taken.insert(own.state.key)
                linked[element.path] = element.path
            } else if !same.isEmpty {
                others.append((element.path, same))
            }
        }
        // What has another path now is one that none has by its own.
        for (path, same) in others {
            guard let free = same.first(where: { taken.insert($0.state.key).inserted }) else { continue }
            linked[path] = free.element.path
        }
    }

    /// All that an inode has, which has several names for a while.
    private static func isSame(_ old: PackageIndex.Element, _ new: PackageIndex.Element) -> Bool {
        old.kind == new.kind && old.mode == new.mode && old.extended == new.extended
    }

    func source(of element: PackageIndex.Element) -> PackageBuilder.Source {
        if let path = linked[element.path] { return .linked(path) }
        // What was here comes here; of what is new, if all was.
        let wasHere = known.contains(element.path) ? !dataless.contains(element.path) : isWhole
        return wasHere ? .whole : .dataless
    }
}

/// Chunks of a new state that lie in files of the old one. Blocks on the disk.
struct OldChunks {
    private let old: OldPackage
    private let key: ContainerKey
    private let places: [ChunkID: (path: ItemPath, range: Range<Int64>)]

    init(_ old: OldPackage, key: ContainerKey) {
        self.old = old
        self.key = key
        var places: [ChunkID: (path: ItemPath, range: Range<Int64>)] = [:]
        for (entry, chunks) in old.whole {
            for chunk in ChunkIndex(Manifest(entries: Array(chunks))).entries {
                places[chunk.chunk] = (entry.element.path, chunk.range)
            }
        }
        self.places = places
    }

    /// Copies what is here and right; returns what is not.
    func lacking(of entries: [ChunkIndex.Entry], after content: StagedContent) throws -> [ChunkIndex.Entry] {
        var lacking: [ChunkIndex.Entry] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Manifest.maximumChunkSize, alignment: 16)
        defer { buffer.deallocate() }
        var opened: (path: ItemPath, file: OwnedFile)?
        for entry in entries {
            guard let place = places[entry.chunk], place.range.count == entry.range.count else {
                lacking.append(entry)
                continue
            }
            if opened?.path != place.path {
                opened = try (
                    place.path, OwnedFile(PackageFolder.open(place.path, in: old.folder.descriptor, flags: 0))
                )
            }
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<place.range.count])
            guard let file = opened?.file,
                try StagedContent.read(file.descriptor, into: part, at: place.range.lowerBound) == part.count,
                chunkID(of: UnsafeRawBufferPointer(part), key: key) == entry.chunk
            else {
                lacking.append(entry)
                continue
            }
            try content.write(UnsafeRawBufferPointer(part), at: entry.range.lowerBound)
        }
        return lacking
    }
}
