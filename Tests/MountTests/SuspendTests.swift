import Glibc
import Synchronization
import TestSupport
import Testing

extension MountTests {
    /// A process that waits for the mount would keep the machine awake.
    @Suite struct SuspendTests {
        /// A thread that opens a file and reads from it: threads, since programs ask again when they are interrupted.
        private final class Waiter: Sendable {
            private let result = Mutex<Int32?>(nil)
            /// 0 for success; `nil` while it waits.
            var failure: Int32? { result.withLock { $0 } }

            init(_ path: String, _ flags: Int32) {
                startThread { [self] in
                    let failure = Files.readFailure(path, flags) ?? 0
                    result.withLock { $0 = failure }
                }
            }
        }

        @Test func `on the way to sleep whoever waits is sent away, and afterwards one waits as ever`() async throws {
            try await withSite { site in
                let bus = try SystemBus(site)
                let a = site.device("a")
                let b = site.device("b", variables: bus.variables)
                try a.up()
                try b.join(a.invite())
                try b.write("here", to: "here.txt")
                // Many bytes to send, and none on any disk.
                try a.shell("truncate -s 4G big.bin")
                try eventually("B has been told of it") { b.exists("big.bin") }
                kill(try a.servicePID(), SIGSTOP)
                let holder = try CoordinationTests.Holder(b, ["--write", b.path("here.txt")])
                // A read, an open that waits for content, and one that waits for a claim.
                let (big, here) = (b.path("big.bin"), b.path("here.txt"))
                let waiting = [(big, O_RDONLY), (big, O_RDWR), (here, O_RDONLY)].map { Waiter($0.0, $0.1) }
                try bus.prepareForSleep(true, as: "org.example.login1")
                try bus.prepareForSleep(false)
                try steadily("they wait") { waiting.allSatisfy { $0.failure == nil } }
                try bus.prepareForSleep(true)
                try eventually("all are sent away", within: TestSettings.atOnce) {
                    waiting.allSatisfy { $0.failure == EINTR }
                }
                // Who asks again before the machine sleeps is not let wait; what is here is as ever.
                for (path, flags) in [(big, O_RDONLY), (big, O_RDWR), (here, O_RDONLY)] {
                    #expect(Files.readFailure(path, flags) == EAGAIN)
                }
                try holder.letGo()
                // Its service notices that the holder has ended; nobody is let wait for that either.
                try eventually("its claim has ended") { (try? b.text("here.txt")) == "here" }

                try bus.prepareForSleep(false)
                try eventually("one waits again") {
                    let reader = try b.startShell("head -c 1 big.bin")
                    poll(nil, 0, 200)
                    defer { reader.kill() }
                    return reader.isRunning
                }
                try b.down()
            }
        }
    }
}
