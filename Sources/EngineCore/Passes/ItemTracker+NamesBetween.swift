import Reconciliation
import UbiquityModel

/// Items that stay under the name between (`TransitionalName`): whoever gave it was to give another in the same commit, or soon after, and
/// may have lost what it knew of that, or never come back.
extension ItemTracker {
    /// Its author first, so that the others need not.
    private static var authorsPause: Duration { .seconds(3) }
    private static var othersPause: Duration { .seconds(20) }

    /// The name that people see which it gets, once it has rested under the other one for long.
    func placeAfterRest(of candidate: Candidate) -> Place? {
        guard let remote = candidate.remote, let rest = rest(of: remote), rest <= .zero, candidate.synced != nil,
            let found = candidate.found, Place(parent: found.parent, name: found.place.name) == remote.place,
            // Its own is not known any more.
            let name = try? Name("recovered")
        else { return nil }
        let place = LocalPlace(folder: found.place.folder, name: name)
        if isFree(place, remote.place.parent) { return Place(parent: remote.place.parent, name: place.name) }
        return secondPlace(for: place.name, in: place.folder, remote.place.parent).map {
            Place(parent: remote.place.parent, name: $0.name)
        }
    }

    /// Under such a name it is not settled: it is looked at again.
    func lookAfterRest(of candidate: Candidate, _ pass: Pass) {
        guard let remote = candidate.remote else { return }
        guard let rest = rest(of: remote) else {
            if !restingSince.isEmpty { restingSince[candidate.id] = nil }
            return
        }
        guard let folder = folderKey(of: remote.place.parent) else { return }
        pass.lookLaterAt[LocalPlace(folder: folder, name: remote.place.name)] = max(rest, .seconds(1))
    }

    /// - Returns: how long it has still to be left alone; `nil` if it has no such name, or one that a program has given.
    private func rest(of remote: RemoteItem) -> Duration? {
        guard !remote.isDeleted, !remote.isAnnounced, TransitionalName.item(of: remote.place.name) == remote.id else {
            return nil
        }
        var resting = restingSince[remote.id] ?? Resting(position: remote.position, since: view.now)
        if resting.position != remote.position { resting = Resting(position: remote.position, since: view.now) }
        restingSince[remote.id] = resting
        let pause = remote.author == view.deviceName ? Self.authorsPause : Self.othersPause
        return pause - (view.now - resting.since)
    }
}

/// How long an item has been under the name between.
package struct Resting {
    /// Of its last change in the cloud.
    var position: UInt64
    var since: Instant
}
