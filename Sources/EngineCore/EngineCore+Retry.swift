extension EngineCore {
    /// When something that could not be done is tried again.
    package enum Retry: Hashable, Sendable {
        case after(Duration)
        /// When the device is connected.
        case whenConnected
        /// When it changes, here or in the cloud.
        case whenChanged

        /// For people, after what is wrong.
        package var description: String {
            switch self {
            case .after(let time) where time < .seconds(1): "tried again at once"
            case .after(let time) where time < .seconds(100): "tried again in \(time.components.seconds) s"
            case .after(let time): "tried again in \((time.components.seconds + 30) / 60) min"
            case .whenConnected: "tried again when this device is connected"
            case .whenChanged: "tried again when it changes, here or in the cloud"
            }
        }
    }

    /// - Parameter works: All that lead to the same item. The first of them counts.
    /// - Returns: `nil` for what is under way, and for what nobody is about to do.
    package func retry(of works: [Work], at now: Instant) -> Retry? {
        guard !works.contains(where: isUnderWay) else { return nil }
        if let first = works.compactMap(readyMoment).min() {
            return connection == .live ? .after(max(.zero, first - now)) : .whenConnected
        }
        return works.contains(where: isParked) ? .whenChanged : nil
    }
}
