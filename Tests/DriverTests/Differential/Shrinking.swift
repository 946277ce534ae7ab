/// Finds a short history that still fails, by leaving things out.
enum Shrinking {
    /// - Parameter fails: whether a history fails; asked at most `attempts` times.
    static func shortest<Element>(
        _ history: [Element],
        attempts: Int,
        fails: ([Element]) throws -> Bool
    ) rethrows -> [Element] {
        var shortest = history
        var left = attempts
        var size = max(1, history.count / 2)
        while left > 0 {
            var start = 0
            var isShorter = false
            while start < shortest.count, left > 0 {
                var candidate = shortest
                candidate.removeSubrange(start..<min(start + size, candidate.count))
                left -= 1
                if !candidate.isEmpty, try fails(candidate) {
                    shortest = candidate
                    isShorter = true
                } else {
                    start += size
                }
            }
            if size == 1, !isShorter { break }
            size = max(1, size / 2)
        }
        return shortest
    }
}
