internal import CloudClient
internal import Logging
internal import SyncEngine
internal import UbiquityControl
internal import UbiquityModel

extension UbiquityService {
    /// What is in the file counts from then on; an error leaves all as it was.
    nonisolated func reloadSettings() async throws(ControlError) {
        let (home, names) = (home, await mountedNames)
        let (settings, keeping) = try await blocking { () throws(ControlError) in
            let file = try SettingsFile.load(home)
            var keeping: [String: KeepingRules] = [:]
            for name in names { keeping[name] = try file.settings(of: name).keeping }
            return (try file.settings(), keeping)
        }
        broker.setOpenLimit(settings.claimLimit)
        cloud.bandwidth.set(settings.bandwidth)
        await setThrift(settings.thrift)
        await setKeeping(keeping)
    }

    private var mountedNames: [String] { mounted.keys.sorted() }

    private func setThrift(_ thrift: Thrift) {
        self.thrift = thrift
        restrain()
    }

    /// The machine's link or its power is another than before.
    func conditionsChanged(_ conditions: MachineConditions) {
        self.conditions = conditions
        restrain()
    }

    func restrain() {
        let restraint = thrift.restraint(conditions)
        for present in mounted.values { present.engine.setRestraint(restraint) }
    }

    private func setKeeping(_ keeping: [String: KeepingRules]) async {
        for (name, rules) in keeping.sorted(by: { $0.key < $1.key }) { await mounted[name]?.engine.setKeeping(rules) }
    }

    /// What of a container's content is here. A file that cannot be understood keeps nobody from his documents.
    nonisolated func keeping(of container: String) async -> KeepingRules {
        let home = home
        do throws(ControlError) {
            return try await blocking { () throws(ControlError) in
                try SettingsFile.load(home).settings(of: container).keeping
            }
        } catch {
            logger.error("the settings are the default ones", metadata: ["why": "\(error)"])
            return KeepingRules()
        }
    }
}
