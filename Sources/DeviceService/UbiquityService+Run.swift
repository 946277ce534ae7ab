internal import CLinux
internal import CloudClient
internal import Dispatch
internal import Glibc
package import Logging
package import UbiquityControl
internal import UbiquityModel

extension UbiquityService {
    /// The whole life of the service's process.
    ///
    /// 1. One service per home: the lock file says so, and the kernel frees it however the process ends.
    /// 2. The control socket is there, then whoever started this is told.
    /// 3. The mounts of the last time come back; requests are answered meanwhile.
    /// 4. SIGTERM, SIGINT or a `stop` request: everything is unmounted, the engines end what they write, the process ends.
    /// - Parameter readyDescriptor: where to tell that it is ready; `nil` in the foreground.
    /// - Parameter request: what to mount, in the foreground; `mounted` is told of it, and an error ends the service.
    package static func run(
        home: HomeDirectories,
        readyDescriptor: Int32?,
        logger: Logger,
        mounting request: MountRequest? = nil,
        mounted: (MountRequest.Answer) -> Void = { _ in }
    ) async throws(ControlError) {
        signal(SIGPIPE, SIG_IGN)
        DescriptorLimit.raise()
        let lock: FileLock
        let service: UbiquityService
        let listener: ControlListener
        do throws(ControlError) {
            try home.create()
            // In a terminal nobody looks on for long at nothing.
            lock = try FileLock(owning: home.serviceLock, patience: .seconds(readyDescriptor == nil ? 3 : 30))
            guard let account = try Account.load(home) else { throw .notSignedIn() }
            service = try UbiquityService(home: home, account: account, logger: logger)
            listener = try ControlListener(home, logger: logger)
        } catch {
            if let readyDescriptor {
                BackgroundProcess.tell(BackgroundProcess.Report(error: error), on: readyDescriptor)
            }
            throw error
        }
        let signals = [SIGTERM, SIGINT, SIGHUP].map { stopOnSignal($0, service) }
        let (told, events) = AsyncStream.makeStream(of: SystemBusWatch.Event.self)
        let busWatch = SystemBusWatch(logger: logger) { events.yield($0) }
        busWatch.start()
        Task { for await event in told { await service.machineTold(event) } }
        listener.start { line, connection in await service.handle(line, connection) }
        logger.notice("started", metadata: ["pid": "\(getpid())"])
        if let readyDescriptor { BackgroundProcess.tell(BackgroundProcess.Report(), on: readyDescriptor) }
        let restoring = Task { await service.restoreMounts() }
        var failure: ControlError?
        do throws(ControlError) {
            if let request { mounted(try await service.mount(request, progress: { _ in })) }
            await service.waitUntilStopped()
        } catch { failure = error }
        await restoring.value
        busWatch.stop()
        events.finish()
        await service.unmountAll()
        await listener.stop()
        await service.cloud.shutdown()
        for source in signals { source.cancel() }
        logger.notice("stopped")
        withExtendedLifetime(lock) {}
        if let failure { throw failure }
    }

    private static func stopOnSignal(_ number: Int32, _ service: UbiquityService) -> any DispatchSourceSignal {
        // The source gets it instead.
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
        source.setEventHandler { Task { await service.stopSoon() } }
        source.resume()
        return source
    }

}
