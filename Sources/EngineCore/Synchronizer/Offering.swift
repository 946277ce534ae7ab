/// Whether the cloud is asked which of a commit's chunks it lacks before they are sent.
///
/// Where it has lacked all of them as often as it was asked, so many commits go without asking; then it is asked again. So no more is sent
/// in vain than was sent for good reason before.
struct Offering {
    private var streak = 0
    private var unasked = 0
    private static var longest: Int { 15 }

    /// Asked once for each commit.
    mutating func isDue() -> Bool {
        guard unasked > 0 else { return true }
        unasked -= 1
        return false
    }

    /// What the cloud answered.
    mutating func note(allLacking: Bool) {
        streak = allLacking ? streak + 1 : 0
        unasked = streak == 0 ? 0 : min(Self.longest, (1 << min(streak, 4)) - 1)
    }
}
