import Logging
package import UbiquityModel

/// Places that were found changed after a clean stop, remembered beyond this process: until they are sent, another start finds them changed
/// as well, and knows nothing of that stop.
extension Synchronizer {
    /// From the state database, before the scan.
    package func load(unwitnessed places: [LocalPlace]) { tracker.unwitnessed = UnwitnessedPlaces(places) }

    /// Where nothing is different any more nothing is sent.
    func forgetEqualPlaces() {
        // What lies in a folder that could not be read is found when it can.
        guard !tracker.unwitnessed.isEmpty, foldersToScan.isEmpty else { return }
        tracker.unwitnessed.removeAll { tracker.aspects[$0] == nil }
    }

    func storeUnwitnessed() {
        do {
            try tracker.unwitnessed.write { isUnwitnessed, places in
                try device.write(unwitnessed: isUnwitnessed, places)
            }
        } catch {
            logger.warning("what was changed while nothing ran is not recorded", metadata: ["why": "\(error)"])
        }
    }
}
