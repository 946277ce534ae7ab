import SystemPackage
package import UbiquityModel

/// Why the engine could not do what it was asked, in the cases that the command line tells apart.
package enum EngineError: Error, Hashable, Sendable {
    case notFound(ItemPath)
    case offline(String)
    /// The server was reached, and stopped answering.
    case stalled(String)
    /// The time limit passed; what was still waited for.
    case timedOut(waitingFor: [String])
    case busy(String)
    case refused(String)
    case failed(String)
    /// `sync` cannot succeed: these items cannot be sent or applied, each with its reason.
    case itemsInError([String])
    case signedOut
    case noSpace
}

extension EngineError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notFound(let path): "\(path): no such item"
        case .offline(let why): "offline: \(why)"
        case .timedOut(let waiting): "time limit passed, waiting for \(waiting.joined(separator: ", "))"
        case .stalled(let why), .busy(let why), .refused(let why), .failed(let why): why
        case .itemsInError(let items): items.joined(separator: "; ")
        case .signedOut: "signed out; sign in again to get your documents back"
        case .noSpace: "no space left on this device"
        }
    }
}

extension EngineError {
    /// What a program sees (semantics section 12).
    var errno: Errno {
        switch self {
        case .notFound: .noSuchFileOrDirectory
        case .offline: .networkDown
        case .stalled, .timedOut: .timedOut
        case .noSpace: .noSpace
        case .busy: .resourceBusy
        case .refused, .signedOut: .permissionDenied
        case .failed, .itemsInError: .ioError
        }
    }
}
