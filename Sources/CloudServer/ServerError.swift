package import CatalogModel
package import ChunkStore

/// Why a server cannot run, or its data cannot be administered. For people: each says what failed and, where known, what helps.
package enum ServerError: Error, Hashable, Sendable {
    case catalog(CatalogError)
    case chunks(ChunkStoreError)
    /// A `--catalog` or `--chunks` that this version cannot use.
    case unusableURL(String, expected: String)
    case dataDirectory(String, reason: String)
    case certificate(String)
    case cannotListen(String, reason: String)
    case failed(String)
}

extension ServerError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .catalog(let error): error.description
        case .chunks(let error): error.description
        case .unusableURL(let url, let expected): "\"\(url)\" cannot be used: expected \(expected)"
        case .dataDirectory(let path, let reason): "the data folder \(path): \(reason)"
        case .certificate(let reason): "the server's certificate: \(reason)"
        case .cannotListen(let address, let reason): "cannot listen on \(address): \(reason)"
        case .failed(let reason): reason
        }
    }
}
