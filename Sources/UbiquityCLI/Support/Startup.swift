import CloudClient
import DeviceService
import Glibc
import Synchronization
import UbiquityControl

/// Starts what is missing on this device: the embedded server, the device service. Call with the start lock held.
struct Startup {
    let home: HomeDirectories
    /// One at a time starts or stops something; the lock ends with this value or its process.
    private let lock: StartLock

    init(_ home: HomeDirectories) throws(ControlError) {
        self.home = home
        try home.create()
        lock = try StartLock(home.startLock)
    }

    /// A connection to the service, which is started if it does not run.
    ///
    /// A server that cannot be started does not keep the device from its own files: its error is returned beside.
    func ensureService() throws(ControlError) -> (client: ControlClientBox, serverError: ControlError?) {
        try lock.take()
        let serverError = try ensureServer()
        if let client = try connect() { return (client, serverError) }
        let words = ["device-service", "--ready-descriptor", "\(BackgroundProcess.readyDescriptor)"]
        _ = try BackgroundProcess.start(words, what: "device service", log: home.serviceLog)
        guard let client = try connect() else { throw .noService() }
        return (client, serverError)
    }

    /// What a service says to a request that may be made twice, and the server's error beside it.
    ///
    /// A service that was killed takes connections for as long as its last thread is there, and never answers: its successor is asked.
    /// - Parameter lettingOthersIn: the lock is given up meanwhile: an import takes hours, and `down` ends it.
    func ask<Request: ControlRequest>(
        _ request: Request,
        lettingOthersIn: Bool = false
    ) throws(ControlError) -> (answer: Request.Answer, serverError: ControlError?) {
        let (client, serverError) = try ensureService()
        if lettingOthersIn { lock.release() }
        if let answer = try client.sendUnlessLost(request) { return (answer, serverError) }
        let (successor, error) = try ensureService()
        if lettingOthersIn { lock.release() }
        return (try successor.send(request), error)
    }

    /// What the service says if one runs. `nil` if none does, or it has ended before it answered.
    func askRunning<Request: ControlRequest>(
        _ request: Request
    ) throws(ControlError) -> (client: ControlClientBox, answer: Request.Answer)? {
        guard let client = try connect(), let answer = try client.sendUnlessLost(request) else { return nil }
        return (client, answer)
    }

    /// For who does what a service would do if one ran: none does, and none begins while this is kept.
    func withoutService() throws(ControlError) -> FileLock {
        do throws(ControlError) { return try FileLock(owning: home.serviceLock, patience: .seconds(10)) } catch {
            guard error.status == .tryAgain else { throw error }
            // It was only just starting, and can be asked by now.
            if try connect() != nil {
                throw ControlError(.tryAgain, error.what, "it has just started", remedy: "run the command again")
            }
            throw ControlError(
                .tryAgain,
                error.what,
                "\(error.why), and cannot be asked",
                remedy: "end that process with SIGTERM, which loses nothing, and run the command again"
            )
        }
    }

    /// `nil` if no service runs.
    func connect() throws(ControlError) -> ControlClientBox? {
        do throws(ControlError) { return try ControlClientBox(home) } catch {
            if error == .noService() { return nil }
            throw error
        }
    }

    /// Starts the embedded server, if the account has one and it does not run.
    /// - Returns: why it cannot be started.
    func ensureServer() throws(ControlError) -> ControlError? {
        guard let account = try Account.load(home) else { throw .notSignedIn() }
        guard account.serverIsEmbedded else { return nil }
        do throws(ControlError) { try ensureServer(account) } catch { return error }
        return nil
    }

    /// The server's port is remembered; should it change all the same, the account follows.
    private func ensureServer(_ account: Account) throws(ControlError) {
        let url = try EmbeddedServer.start(home)
        guard url != account.credentials.url else { return }
        var account = account
        account.credentials.url = url
        try account.save(home)
    }
}

/// The start lock, let go while a request takes its time.
private final class StartLock: Sendable {
    private let path: String
    private let lock: Mutex<FileLock?>

    init(_ path: String) throws(ControlError) {
        self.path = path
        lock = Mutex(try FileLock(waitingFor: path))
    }

    func take() throws(ControlError) {
        guard lock.withLock({ $0 == nil }) else { return }
        let taken = try FileLock(waitingFor: path)
        lock.withLock { $0 = taken }
    }

    func release() { lock.withLock { $0 = nil } }
}

/// A connection that can be passed on. Claims that it holds end with it.
final class ControlClientBox {
    private var client: ControlClient

    init(_ home: HomeDirectories) throws(ControlError) { client = try ControlClient(home) }

    var servicePID: Int32 { client.servicePID }

    /// Sends a request, shows how far it is, and waits for its answer.
    func send<Request: ControlRequest>(_ request: Request) throws(ControlError) -> Request.Answer {
        do throws(ControlError) {
            let answer = try client.send(request) { ProgressLine.shared.show($0) }
            ProgressLine.shared.clear()
            return answer
        } catch {
            ProgressLine.shared.clear()
            throw error
        }
    }

    /// `nil` if the service has ended instead: then it is gone.
    fileprivate func sendUnlessLost<Request: ControlRequest>(
        _ request: Request
    ) throws(ControlError) -> Request.Answer? {
        do throws(ControlError) { return try send(request) } catch {
            guard error == .serviceLost() else { throw error }
            waitForEnd()
            return nil
        }
    }

    func takeDescriptor() -> Int32? { client.takeDescriptor() }

    /// Waits until the service's process is gone.
    func waitForEnd() {
        let process = ProcessIdentity(pid: servicePID)
        client.waitUntilClosed()
        _ = process?.waitForEnd(within: .seconds(60))
    }
}

/// Most verbs: the running service, or exit code 69.
func connectedService() throws(ControlError) -> ControlClientBox { try ControlClientBox(try HomeDirectories.current()) }
