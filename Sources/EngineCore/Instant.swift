/// A moment of the engine's own clock, as time since it started. The core never reads a clock: each event brings the moment.
package struct Instant: Hashable, Sendable, Comparable {
    package var sinceStart: Duration

    package init(_ sinceStart: Duration) { self.sinceStart = sinceStart }

    package static let start = Instant(.zero)

    package static func + (instant: Self, duration: Duration) -> Self { Self(instant.sinceStart + duration) }
    package static func - (left: Self, right: Self) -> Duration { left.sinceStart - right.sinceStart }
    package static func < (left: Self, right: Self) -> Bool { left.sinceStart < right.sinceStart }
}
