import Driver
import EngineCore
import Glibc
import Logging
import Replica
import SystemPackage
import UbiquityModel

/// Old states of packages, in the staging folder: programs that walked in before a package was replaced go on there, and what they write is
/// kept (semantics section 4), in whatever process this happens and however full the disk is.
extension ContainerEngine {
    /// How long the old state of a package stays for programs that walked in before it was replaced, and how long it takes until what hinders
    /// its removal is looked at again.
    private static let keepingTime = Duration.seconds(30)

    func keepReplaced(_ staged: String) {
        // Not held meanwhile: who mounts the container again would wait for it. What is left then, the next start looks after.
        Task { [weak self] in
            repeat {
                try? await Task.sleep(for: Self.keepingTime)
            } while await self?.letGo(ofReplaced: staged) == false
        }
    }

    /// What an earlier process has left.
    func keepFormerlyReplaced() async {
        let staging = replica.staging
        let left: [String]
        do { left = try await BlockingPool.shared.run { try staging.replacedPackages() } } catch {
            return logger.warning("old states of packages are not looked at", metadata: ["why": "\(error)"])
        }
        // One after the other: a file of two of them is kept when it is only the second one's.
        for staged in left where await !letGo(ofReplaced: staged) { keepReplaced(staged) }
    }

    /// Keeps what was written in it, and removes it if nobody is at it any more.
    /// - Returns: whether nothing is left to do here.
    private func letGo(ofReplaced staged: String) async -> Bool {
        guard !isLettingGo else { return false }
        isLettingGo = true
        defer { isLettingGo = false }
        let staging = replica.staging
        do {
            while true {
                guard !synchronizer.isStopping else { return true }
                // Those that rest are of no package.
                guard orphansBeingKept == orphansResting else { return false }
                let seen = try await BlockingPool.shared.run { try staging.replacedPackage(staged) }
                guard let seen else { break }
                if seen.isInUse || seen.files.contains(where: { mount?.hasWriter($0) == true }) { return false }
                if seen.written.isEmpty { break }
                for written in seen.written { try await keep(written, of: staged, from: seen.parent) }
            }
            try await BlockingPool.shared.run {
                try staging.remove(staged)
                staging.forget(replaced: staged)
            }
            // What the kernel knows of it keeps it on the disk.
            mount?.removed(staged: staged)
            return true
        } catch {
            logger.warning("the old state of a package stays for now", metadata: ["why": "\(error)"])
            return false
        }
    }

    private func keep(_ written: ReplacedPackage.Written, of staged: String, from parent: InodeKey) async throws {
        guard let name = written.path.last else { return }
        let staging = replica.staging
        let file = try await BlockingPool.shared.run {
            let folder = try staging.open(staged, flags: O_RDONLY | O_DIRECTORY)
            return OwnedFile(try PackageFolder.open(written.path, in: folder.raw, flags: O_RDONLY))
        }
        try await keep(orphan: file, lastParent: parent, lastName: name)
        try await BlockingPool.shared.run { try staging.note(kept: [written.state], ofReplaced: staged) }
    }

    /// What a program has closed is kept at once: not a second time, when its package is looked at.
    func noteKept(_ orphan: LocalState) async {
        let staging = replica.staging
        _ = try? await BlockingPool.shared.run {
            for staged in try staging.replacedPackages() { try staging.note(kept: [orphan], ofReplaced: staged) }
        }
    }
}
