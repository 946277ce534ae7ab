/// SplitMix64: the same numbers for the same seed on every machine.
package struct SimRandom: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// 0..<count.
    mutating func below(_ count: Int) -> Int { Int(next() % UInt64(count)) }

    mutating func happens(_ percent: Int) -> Bool { below(100) < percent }

    mutating func pick<Element>(_ elements: [Element]) -> Element? {
        elements.isEmpty ? nil : elements[below(elements.count)]
    }

    mutating func duration(_ range: ClosedRange<Int>) -> Duration {
        .microseconds(range.lowerBound + below(range.count))
    }

    /// Of a simulation of its own: what one takes does not change what another one gets.
    mutating func split() -> SimRandom { SimRandom(seed: next()) }
}
