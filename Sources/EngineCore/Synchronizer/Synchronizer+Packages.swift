import Reconciliation
package import UbiquityModel

/// Packages: what programs do in one is a change of the one document that it is.
extension Synchronizer {
    /// - Returns: whether nothing but packages was changed by that.
    func isOfPackage(_ change: LocalChange) -> Bool {
        let into = package(around: change.parent)
        let from = change.movedFrom.map { self.package(around: $0.parent) }
        // A file that was open for writing, and was not written to, has changed nothing.
        if let into, change.aspects != .closed { noteChanged(into) }
        if let left = from ?? nil, left != into { noteChanged(left) }
        if change.aspects.contains(.closed), let into {
            for work in (waitingForPackage.removeValue(forKey: into) ?? []).sorted() { handle(.woken(work)) }
        }
        guard into != nil else {
            if let from, from != nil, change.isFolder, let key = change.key {
                // Nobody has told of what lies in it.
                foldersToScan.insert(key)
            }
            return false
        }
        // Should it turn up elsewhere as an item's folder, or the package be none by then, nobody tells again of what changed in it.
        foldersToScan.insert(change.parent)
        // What was an item until it was moved here is looked at where it is.
        if let from, from == nil { return false }
        // It was moved into the package, and may be looked for where it came to: by the item that it was, or when the package is none any more.
        if from != nil, let key = change.key, tracker.moves[key] != nil {
            tracker.moves[key] = LocalPlace(folder: change.parent, name: change.name)
        }
        if change.aspects.contains(.entry), let key = change.key, device.isLogged(.inode(key)) {
            tracker.freshDeletions.insert(key)
        }
        tellOtherNames(of: change)
        return true
    }

    /// A folder was taken for a package, and is none by now: what changed in it was told of as the package's.
    package func scanFormerPackage(_ folder: InodeKey) { foldersToScan.insert(folder) }

    /// What cannot be told now is looked at as if it lay in none, and told then.
    private func package(around folder: InodeKey) -> LocalPlace? { (try? device.package(around: folder)) ?? nil }

    private func noteChanged(_ package: LocalPlace) {
        tracker.editedAt[package] = device.wallClock
        noteWritten(package)
        noteChangedPackage(package)
        noteOtherContents(in: package)
    }

    /// A package was looked at: which of its files have further names.
    package func noteLinked(_ files: [InodeKey], of package: InodeKey) { linkedParts.set(files, of: package) }

    /// A file was changed that may have names in packages, or have them besides the package in which that is told of.
    func tellPackages(with file: InodeKey, except place: LocalPlace, _ changed: LocalChange.Aspects) {
        // A further name is no change of a package.
        guard !changed.isEmpty else { return }
        let parts = linkedParts.packages(with: file)
        guard !parts.isEmpty else { return }
        let told = package(around: place.folder)
        for key in parts {
            guard let place = package(around: key), place != told else { continue }
            noteChanged(place)
        }
    }

    /// Something in it stands for another content than before, or has gone: what could not be had of it, or was not there, is asked for
    /// once more by whoever waits for all of it.
    package func noteOtherContents(in package: LocalPlace) {
        guard tracker.asksForContents, let key = (try? device.key(at: package)) ?? nil else { return }
        tracker.noteOtherContent(key)
        wakeWhoWaits(forContentOf: key)
    }

    /// The same of the package in which a place is, if it is in one.
    func noteOtherContent(at place: LocalPlace) {
        guard tracker.asksForContents, let package = package(around: place.folder) else { return }
        noteOtherContents(in: package)
    }

    // MARK: What a restored server has lost

    /// This device has only a part of a package, and nobody has the rest. Who has all of it brings it back; somebody else may have brought back
    /// something else.
    /// - Parameter content: what the package is, if that is known.
    func partsAreMissing(_ candidate: Candidate, _ content: ContentID? = nil) {
        let sent = candidate.remote.flatMap { $0.isAnnounced || $0.content.kind != .package ? nil : $0 }
        // Of what cannot be known somebody may have changed a name, or a link.
        let isAsAgreed = content.map { (try? device.wasFormer($0)) ?? false } ?? false
        if let sent, isAsAgreed, candidate.found?.state.facts?.localBytes == 0 {
            // There is nothing of it here: until it is brought back, what is there counts.
            candidate.applies = [.planned(sent.isDeleted ? .vanish : .replace)]
        } else if let sent, !sent.isDeleted, sent.content.revision != candidate.synced?.content.revision {
            // A document that is made of two is none: what is here of this one stays, and can be read.
            candidate.applies = [.asideAsAnother]
        } else if tracker.isInTheWay(candidate) {
            candidate.applies = [.aside]
        } else {
            noteProblem(candidate, "the content of a file in it is neither here nor in the cloud")
            candidate.verdict = .failed
        }
    }

    /// The same was found out while a package was read beside the passes, which is looked at once more.
    package func noteLacking(_ file: WantedFile) { lackingParts[file.place] = LocalEvidence(file.state) }
}
