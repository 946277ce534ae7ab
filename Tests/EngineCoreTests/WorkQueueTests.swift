import Testing

@testable import EngineCore

@Suite struct WorkQueueTests {
    /// Each change took room for good while there was no connection.
    @Test func `what changes again and again takes the room of one`() {
        var queue = WorkQueue<Int>()
        for number in 0..<100_000 { queue.set(number % 3, readyAt: .start + .milliseconds(number)) }
        #expect(queue.count == 3 && queue.room < 3000)
        #expect(queue.takeReady(at: .start + .seconds(1000), limit: 10) == [1, 2, 0])
    }
}
