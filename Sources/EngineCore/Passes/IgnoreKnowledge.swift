package import Reconciliation
package import UbiquityModel

/// What is known between passes of `.ubiquityignore` files and of what they keep here. In memory only: a scan learns it anew, and whoever
/// changes a name, or tells of one that was changed, says so.
///
/// A container without such files costs no look at the disk, and one question to the database for each folder that gets something new.
package struct IgnoreKnowledge {
    /// Folders that have such a file here, or had when it was last looked for.
    var folders: Set<InodeKey> = []
    /// Folders for which the cloud has none, when it was last asked.
    var withoutCloudFile: Set<InodeKey> = []
    /// The folders' files, whatever they say, as they were when their place was last looked at.
    var looked: [InodeKey: LocalEvidence] = [:]
    /// What the folders' files say.
    var read: [InodeKey: ReadFile] = [:]
    /// Folders in which something new is not sent, for whatever reason: it is looked at again when the rules change.
    package var withUnsent: Set<InodeKey> = []
    /// Folders that are not sent: nobody has looked at what lies in them.
    package internal(set) var unsentFolders: Set<InodeKey> = []
    /// Those of them that are sent nevertheless, since something that is synced was moved there.
    var needed: Set<InodeKey> = []
    /// Below these folders other rules hold than before.
    package var changed: Set<InodeKey> = []
    /// By folder: files that mean nothing, and why.
    package internal(set) var faults: [InodeKey: String] = [:]

    struct ReadFile {
        var rules: IgnoreRules
        /// Of the file as it was read. `nil`: to be read again.
        var evidence: LocalEvidence?
    }

    // MARK: What is told

    /// A name is, or was, in that folder.
    package mutating func noteName(_ name: Name, in folder: InodeKey) {
        guard IgnoreRules.isName(name) else { return }
        folders.insert(folder)
        // Whatever its times say.
        read[folder]?.evidence = nil
    }

    package mutating func note(_ change: LocalChange) {
        noteName(change.name, in: change.parent)
        if let from = change.movedFrom {
            noteName(from.name, in: from.parent)
            if change.isFolder, let key = change.key { changed.insert(key) }
        }
    }

    /// The cloud has other items than before.
    mutating func noteRemote(_ items: [RemoteItem]) {
        if items.contains(where: { IgnoreRules.isName($0.place.name) }) { withoutCloudFile = [] }
    }

    /// - Parameters:
    ///   - isUnknown: it is no item and lies in none, and nobody is about to look at it. (Who looks finds out what is ignored.)
    package mutating func noteScanned(
        _ name: Name,
        _ state: LocalState,
        in folder: InodeKey,
        isUnknown: Bool
    ) {
        if IgnoreRules.isName(name) { folders.insert(folder) }
        if isUnknown, state.kind == .folder { unsentFolders.insert(state.key) }
    }

    // MARK: What is found out

    mutating func set(_ rules: IgnoreRules, of folder: InodeKey, _ evidence: LocalEvidence?) {
        // What was read for the first time may be other than what a service before this one went by.
        if read[folder]?.rules != rules { changed.insert(folder) }
        read[folder] = ReadFile(rules: rules, evidence: evidence)
    }

    /// - Parameter fault: why the folder's file means nothing.
    mutating func set(_ fault: String?, of folder: InodeKey) {
        if let fault, faults[folder] != fault { changed.insert(folder) }
        faults[folder] = fault
    }

    /// Everything in it is looked at now.
    package mutating func endUnsent(_ folder: InodeKey) {
        unsentFolders.remove(folder)
        needed.remove(folder)
    }

    package mutating func endWithUnsent(_ folder: InodeKey) { withUnsent.remove(folder) }

    /// - Parameter isThere: whether a folder still is.
    package mutating func forget(unless isThere: (InodeKey) -> Bool) {
        folders = folders.filter(isThere)
        withUnsent = withUnsent.filter(isThere)
        unsentFolders = unsentFolders.filter(isThere)
        needed = needed.filter(isThere)
        looked = looked.filter { isThere($0.key) }
        read = read.filter { isThere($0.key) }
        faults = faults.filter { isThere($0.key) }
    }
}

/// The rules that hold in a folder, as far as they are here.
enum FolderRules {
    case known(IgnoreScope)
    case unknown(UnreadRules)
}

/// A `.ubiquityignore` of which it is not known what it says.
package struct UnreadRules {
    /// For people.
    package var path: String
    var place: LocalPlace
    /// Its placeholder; `nil`: the cloud has it, and it is about to come here.
    var state: LocalState?
    var item: ItemID?
}

/// What the rules say of something that is not in the cloud.
package enum IgnoreRuling {
    case sent
    case ignored(LocalOnly.Reason)
    case waits(UnreadRules)
}
