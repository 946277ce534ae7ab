import EngineCore
import Testing
import UbiquityModel

@Suite struct ArrivalReadingTests {
    private let folder = ItemID(high: 0, low: 1)
    private let other = ItemID(high: 0, low: 2)

    @Test func `nothing comes whole as long as nobody reads what comes`() {
        var reading = ArrivalReading()
        for second in 0..<10 { #expect(reading.arrived(files(100), at: at(second * 100)) == 0) }
    }

    @Test func `who reads what comes gets more and more of it whole, and never all`() {
        var reading = ArrivalReading()
        _ = reading.arrived(files(1000), at: at(0))
        var came: [Int] = []
        for step in 1...6 {
            reading.missed(in: folder, at: at(step * 100))
            came.append(reading.arrived(files(1000), at: at(step * 100 + 50)))
        }
        #expect(came == [32, 64, 128, 256, 512, 512])
        #expect(reading.arrived(files(20), at: at(800)) == 19)
        #expect(reading.arrived(files(1), at: at(800)) == 0)
    }

    @Test func `it grows only with further misses, and ends without them`() {
        var reading = ArrivalReading()
        _ = reading.arrived(files(10), at: at(0))
        reading.missed(in: folder, at: at(10))
        #expect(reading.arrived(files(1000), at: at(20)) == 32)
        #expect(reading.arrived(files(1000), at: at(30)) == 32)
        #expect(reading.arrived(files(1000), at: at(2011)) == 0)
        // And begins anew.
        reading.missed(in: folder, at: at(2020))
        #expect(reading.arrived(files(1000), at: at(2030)) == 32)
    }

    @Test func `reading what has been there for long begins nothing`() {
        var reading = ArrivalReading()
        reading.missed(in: folder, at: at(0))
        #expect(reading.arrived(files(100), at: at(10)) == 0)
        reading.missed(in: other, at: at(20))
        #expect(reading.arrived(files(100), at: at(30)) == 0)
    }

    @Test func `only the folders of the newest arrivals count`() {
        var reading = ArrivalReading()
        _ = reading.arrived([folder] + (UInt64(10)..<200).map { ItemID(high: 0, low: $0) }, at: at(0))
        reading.missed(in: folder, at: at(10))
        #expect(reading.arrived(files(100), at: at(20)) == 0)
        reading.missed(in: ItemID(high: 0, low: 199), at: at(30))
        #expect(reading.arrived(files(100), at: at(40)) == 32)
    }

    private func files(_ count: Int) -> [ItemID] { Array(repeating: folder, count: count) }
    private func at(_ milliseconds: Int) -> Instant { Instant(.milliseconds(milliseconds)) }
}
