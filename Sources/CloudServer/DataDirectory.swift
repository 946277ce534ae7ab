internal import CatalogModel
internal import CatalogStore
internal import ChunkStore
internal import Glibc
internal import UbiquityModel

/// The server's data folder: `catalog.sqlite`, `packs/`, `tls.pem`.
struct DataDirectory: Sendable {
    private static let catalogName = "catalog.sqlite"

    let path: String

    /// Makes the folder, for its owner only, if it is missing.
    init(_ path: String) throws(ServerError) {
        self.path = path
        var made = ""
        for component in path.split(separator: "/", omittingEmptySubsequences: true) {
            made += path.hasPrefix("/") || !made.isEmpty ? "/\(component)" : String(component)
            if mkdir(made, 0o700) == 0 { continue }
            let code = errno
            // A folder above that exists may well refuse new ones (EACCES, EROFS): the last one decides.
            guard code != EEXIST, made == path else { continue }
            throw .dataDirectory(path, reason: String(cString: strerror(code)))
        }
        if access(path, R_OK | W_OK | X_OK) != 0 {
            let code = errno
            throw .dataDirectory(path, reason: String(cString: strerror(code)))
        }
    }

    /// Whether a catalogue is where one is made by default. What cannot be looked at counts as well: opening it tells why.
    static func hasCatalog(_ path: String) -> Bool { access("\(path)/\(catalogName)", F_OK) == 0 || errno != ENOENT }

    func openCatalog(
        url: String?,
        hasPack: @escaping @Sendable (_ pack: UInt64, _ end: UInt64) -> Bool = { _, _ in true }
    ) throws(ServerError) -> SQLiteCatalog {
        let file = try location(url, scheme: "sqlite:", fallback: Self.catalogName)
        Self.makePrivate(file)
        do throws(CatalogError) { return try SQLiteCatalog(path: file, hasPack: hasPack) } catch {
            throw .catalog(error)
        }
    }

    /// Names and keys are for nobody else's eyes, whoever made the folder and for whom. SQLite gives the files beside it the same mode. What is
    /// there already has the mode that somebody wants it to have; what keeps it from being made, opening it tells.
    private static func makePrivate(_ file: String) {
        let descriptor = open(file, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
        if descriptor >= 0 { close(descriptor) }
    }

    /// - Parameter now: by which packs are numbered.
    func openChunks(url: String?, packBytes: UInt64?, now: Timestamp) throws(ServerError) -> FolderChunkStore {
        let folder = try location(url, scheme: "folder:", fallback: "packs")
        let limit = packBytes ?? FolderChunkStore.packLimit
        let first = UInt64(max(1, now.nanoseconds / 1_000_000_000))
        do throws(ChunkStoreError) {
            return try FolderChunkStore(
                folder: folder,
                packLimit: limit,
                firstPack: first,
                // More packs than anybody has made while the clock was right, and few enough for millions of openings.
                gap: .random(in: 1 << 32..<1 << 40)
            )
        } catch {
            throw .chunks(error)
        }
    }

    private func location(_ url: String?, scheme: String, fallback: String) throws(ServerError) -> String {
        guard let url else { return "\(path)/\(fallback)" }
        guard url.hasPrefix(scheme), url.count > scheme.count else {
            throw .unusableURL(url, expected: "\(scheme)PATH")
        }
        return String(url.dropFirst(scheme.count))
    }
}
