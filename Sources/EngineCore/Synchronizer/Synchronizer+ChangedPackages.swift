import Logging
package import UbiquityModel

/// Packages that programs have changed and that are not sent yet, remembered beyond this process. What is known of a package as it was agreed
/// on has no change times, which linking, filling and evicting its files move: who writes into one and sets size and time back, as some
/// programs do to be discreet, leaves no other trace.
extension Synchronizer {
    /// From the state database, before the scan.
    package func load(changedPackages: Set<InodeKey>) {
        self.changedPackages = changedPackages
        let unknown = changedPackages.filter { ((try? device.synced(key: $0)) ?? []).isEmpty }
        write(isChanged: false, unknown)
    }

    func noteChangedPackage(_ place: LocalPlace) {
        guard placesOfChangedPackages[place] == nil, let key = (try? device.key(at: place)) ?? nil else { return }
        placesOfChangedPackages[place] = key
        guard !changedPackages.contains(key) else { return }
        write(isChanged: true, [key])
    }

    /// What programs did in them was looked at, and nothing has come since.
    func forgetLookedAtPackages() {
        guard !placesOfChangedPackages.isEmpty else { return }
        let done = placesOfChangedPackages.filter { tracker.changedAt[$0.key] == nil && tracker.aspects[$0.key] == nil }
        guard !done.isEmpty else { return }
        for place in done.keys { placesOfChangedPackages[place] = nil }
        write(isChanged: false, changedPackages.intersection(done.values))
    }

    private func write(isChanged: Bool, _ packages: Set<InodeKey>) {
        guard !packages.isEmpty else { return }
        if isChanged { changedPackages.formUnion(packages) } else { changedPackages.subtract(packages) }
        do { try device.write(changed: isChanged, packages: packages.sorted()) } catch {
            logger.warning("changed packages are not recorded", metadata: ["why": "\(error)"])
        }
    }
}
