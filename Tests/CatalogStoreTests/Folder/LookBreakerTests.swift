import Synchronization
import Testing

@testable import ChunkStore

@Suite struct LookBreakerTests {
    /// How long a look takes, and for how long nobody looks then, in milliseconds.
    @Test(arguments: [(10, 0), (100, 0), (150, 15_000), (10_000, 1_000_000)])
    func `after a look that took long nobody looks for a hundred times as long`(look: Int, pause: Int) {
        let time = Mutex(ContinuousClock.now)
        let breaker = LookBreaker { time.withLock { $0 } }
        func letPass(_ milliseconds: Int) { time.withLock { $0 = $0.advanced(by: .milliseconds(milliseconds)) } }
        var looks = 0
        let first = breaker.look {
            letPass(look)
            looks += 1
            return true
        }
        #expect(first)
        func again() -> Bool {
            breaker.look {
                looks += 1
                return true
            }
        }
        if pause > 0 {
            #expect(!again())
            letPass(pause - 1)
            #expect(!again())
            #expect(looks == 1)
            letPass(1)
        }
        #expect(again())
        #expect(looks == 2)
    }

    @Test func `what a look says is the answer`() {
        let breaker = LookBreaker()
        #expect(!breaker.look { false })
        #expect(breaker.look { true })
    }
}
