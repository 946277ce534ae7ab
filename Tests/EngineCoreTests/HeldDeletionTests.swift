import Reconciliation
import Testing
import UbiquityModel

@testable import EngineCore

/// Deletions that wait, since they are many or since nobody can say how many.
@Suite struct HeldDeletionTests {
    private let device = FakeDevice()
    private let synchronizer: Synchronizer<FakeDevice>

    init() {
        synchronizer = device.makeSynchronizer()
    }

    private func sends(_ range: Range<Int>) -> [PlannedSend] {
        range.map { number in
            let id = ItemID(high: 1, low: UInt64(number))
            return PlannedSend(candidate: Candidate(id: id, works: []), actions: [.delete(base: nil)])
        }
    }

    private func pass() -> Pass { Pass(seenUpTo: 0) }

    private func wait(_ seconds: Double) { device.now = device.now + .seconds(seconds) }

    @Test func `while the container cannot be counted many deletions wait, and go when it can`() {
        device.databaseFails = true
        let batch = sends(0..<600)
        #expect(synchronizer.holdBackDeletions(batch, pass()).isEmpty)
        #expect(batch.allSatisfy { $0.candidate.verdict == .failed })
        #expect(synchronizer.heldDeletions.isEmpty)
        device.databaseFails = false
        let sent = synchronizer.holdBackDeletions(sends(0..<400), pass())
        #expect(sent.count == 400)
        for send in sent { synchronizer.noteSent(deletion: send.candidate.id) }
        #expect(synchronizer.holdBackDeletions(sends(400..<600), pass()).isEmpty)
        #expect(synchronizer.heldDeletions.count == 200)
    }

    @Test func `the container is counted once in a while, and half of it goes before anybody is asked`() {
        var n = 0
        var gone = 0
        while gone < 1000 {
            let batch = sends(n..<n + 50)
            n += 50
            let sent = synchronizer.holdBackDeletions(batch, pass())
            for send in sent {
                synchronizer.admittedDeletions.remove(send.candidate.id)
                synchronizer.noteSent(deletion: send.candidate.id)
            }
            device.total -= sent.count
            if sent.isEmpty { break }
            gone += sent.count
            wait(0.1)
        }
        #expect(gone == 500)
        #expect(device.counts == 2, "once, and before anything is held")
        let counted = device.counts
        for _ in 0..<4 {
            #expect(synchronizer.holdBackDeletions(sends(n..<n + 50), pass()).isEmpty)
            n += 50
            wait(0.1)
        }
        #expect(device.counts == counted)
        #expect(device.heldWrites.allSatisfy { $0.isHeld && $0.items.count == 50 })
        #expect(device.held == synchronizer.heldDeletions)
        synchronizer.confirmDeletions()
        #expect(device.held.isEmpty)
    }

    @Test func `what has come since is counted before anything is held`() {
        device.total = 400
        #expect(synchronizer.holdBackDeletions(sends(0..<100), pass()).count == 100)
        device.total = 5300
        wait(1)
        #expect(synchronizer.holdBackDeletions(sends(100..<400), pass()).count == 300)
    }
}
