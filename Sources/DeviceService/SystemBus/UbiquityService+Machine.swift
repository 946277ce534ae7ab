internal import Driver

extension UbiquityService {
    /// How long the machine may take to fall asleep. Whatever becomes of it, afterwards programs wait as ever.
    private static let fallingAsleep = Duration.seconds(10)

    func machineTold(_ event: SystemBusWatch.Event) {
        switch event {
        case .sleeps(let isAsleep): machineSleeps(isAsleep)
        case .conditions(let conditions): conditionsChanged(conditions)
        }
    }

    /// A process that waits for us in the kernel cannot be frozen, and the machine would stay awake for it: on its way to sleep nobody
    /// waits, also who was just told so and asks again.
    private func machineSleeps(_ isAsleep: Bool) {
        wakening?.cancel()
        for present in present { present.mount.setImpatient(isAsleep) }
        guard isAsleep else { return }
        wakening = Task {
            do { try await Task.sleep(for: Self.fallingAsleep) } catch { return }
            for present in self.present { present.mount.setImpatient(false) }
        }
    }
}
