import Testing
import UbiquityModel

@Suite struct SizesTests {
    @Test(
        arguments: [
            (0, 0, 100), (0, 7, 0), (7, 7, 100), (8, 7, 100), (1, 3, 33), (.max - 1, .max, 99), (.max, .max, 100),
            (1 << 60, 1 << 61, 50), (-1, 5, 0),
        ] as [(Int64, Int64, Int)]
    )
    func `a part of any size is so many hundredths`(part: Int64, whole: Int64, percent: Int) {
        #expect(Sizes.percent(part, of: whole) == percent)
    }

    @Test func `sums end where numbers do`() {
        #expect(Sizes.sum([1, 2, 3]) == 6)
        #expect(Sizes.sum([.max, 1, .max]) == .max)
        #expect(Sizes.sum(.max - 1, 1) == .max)
        #expect(Sizes.sum([]) == 0)
    }
}
