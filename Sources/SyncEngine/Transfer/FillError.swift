import CloudClient
import EngineCore
import SystemPackage
import UbiquityModel

/// Why content could not be brought here.
enum FillError: Error {
    case cloud(CloudError)
    case system(Errno)
    case corrupted(String)
    /// The item or the revision is gone.
    case gone
    /// Only announced, and deleted before it was sent: there is no content.
    case withdrawn
    /// The item has another content by now, and what the file stands for is not among its versions.
    case superseded
    /// Only announced, and its author has not sent it for as long as one waits.
    case unsent(author: String)
    /// Only announced, and its author is no device of the account any more: it will not come.
    case authorGone(String)
    /// Only announced, for somebody who does not wait.
    case wouldWait

    /// What the waiting program sees (semantics section 12).
    var errno: Errno {
        switch self {
        case .cloud(let error):
            switch error {
            case .offline: .networkDown
            case .stalled: .timedOut
            case .revoked, .unauthorized: .permissionDenied
            case .notFound: .noSuchFileOrDirectory
            case .tooNew: .protocolError
            case .cancelled: .interrupted
            case .wrongServer: .networkDown
            case .rejected, .serverFull, .quotaExceeded, .malformed: .ioError
            }
        case .system(let error): error
        case .corrupted: .ioError
        case .gone, .withdrawn, .superseded: .noSuchFileOrDirectory
        case .unsent: .timedOut
        case .authorGone: .hostIsDown
        case .wouldWait: .wouldBlock
        }
    }

    /// Trying again later is worth it, and nothing to be told of.
    var isPassing: Bool {
        let passing: [Errno] = [.networkDown, .timedOut, .noSpace, .interrupted, .stale]
        return passing.contains(errno)
    }

    /// Other contents would not come either, now.
    var concernsAll: Bool {
        switch self {
        case .cloud(.offline), .cloud(.stalled), .cloud(.cancelled), .cloud(.wrongServer), .system(.noSpace): true
        case .cloud, .system, .corrupted, .gone, .withdrawn, .superseded, .unsent, .authorGone, .wouldWait: false
        }
    }

    /// What the cloud says if nobody has the content.
    var absence: ContentAbsence? {
        switch self {
        case .withdrawn: .withdrawn
        case .superseded: .superseded
        case .gone, .authorGone: .gone
        case .cloud, .system, .corrupted, .unsent, .wouldWait: nil
        }
    }
}
