internal import CloudClient
internal import SyncEngine
internal import UbiquityControl

extension UbiquityService {
    /// What is in the file counts from then on; an error leaves all as it was.
    nonisolated func reloadSettings() async throws(ControlError) {
        let home = home
        let settings = try await blocking { () throws(ControlError) in try SettingsFile.load(home).settings() }
        broker.setOpenLimit(settings.claimLimit)
        cloud.bandwidth.set(settings.bandwidth)
        await setMetered(settings.isMetered)
    }

    private func setMetered(_ isMetered: Bool) {
        self.isMetered = isMetered
        for present in mounted.values { present.engine.setMetered(isMetered) }
    }
}
