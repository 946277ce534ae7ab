internal import Driver
internal import Replica
internal import SyncEngine
internal import UbiquityControl

extension ControlError {
    /// What a person sees of an engine's failure on `what`.
    init(_ what: String, _ error: EngineError) {
        switch error {
        case .notFound: self.init(what, "no such item")
        case .offline(let why): self.init(.tryAgain, what, "offline: \(why)", remedy: "`ubiquity status` tells more")
        case .timedOut(let waiting):
            self.init(
                .tryAgain,
                what,
                waiting.isEmpty
                    ? "the time limit passed" : "the time limit passed, waiting for \(waiting.joined(separator: ", "))"
            )
        case .busy(let why), .stalled(let why): self.init(.tryAgain, what, why)
        case .refused(let why), .failed(let why): self.init(what, why)
        case .itemsInError(let items):
            self.init(what, items.joined(separator: "; "), remedy: "`ubiquity status` lists all")
        case .signedOut: self.init(what, "signed out; sign in again to get your documents back")
        case .noSpace: self.init(what, "no space left on this device", remedy: "`ubiquity evict PATH…` makes room")
        }
    }

    init(_ what: String, _ error: ReplicaError) {
        switch error {
        case .inUse:
            self.init(.tryAgain, what, error.description, remedy: "`ubiquity status` shows whether a service runs")
        case .system, .database, .tooNew, .corrupted, .noExtendedAttributes: self.init(what, error.description)
        }
    }

    init(_ error: MountError) {
        switch error {
        case .notADirectory(let path): self.init(path, "it is not a folder")
        case .notEmpty(let path): self = Self.occupied(path)
        case .alreadyMounted(let path, let source):
            self.init(path, "it is already mounted by \(source)", remedy: "choose another folder")
        case .fuseMissing(let what):
            self.init("mount", what, remedy: "`apt-get install fuse3`, and /dev/fuse must be open to you")
        case .refused(let why): self.init("mount", why)
        }
    }

    static func occupied(_ path: String) -> ControlError {
        ControlError(
            path,
            "it is not empty",
            remedy: "`--import` moves what is there into the container; or choose another folder"
        )
    }
}
