import CloudClient
import Driver
import EngineCore
import Logging
import Reconciliation
import Replica
import SystemPackage
import UbiquityModel

/// Large files that are read and sent beside the passes.
extension ContainerEngine {
    func beginTransfer(_ file: WantedFile, of id: ItemID, _ works: Set<Work>) {
        let shown = path(of: file.place)?.description ?? file.place.name.description
        transferTasks[id] = Task { await self.transfer(file, of: id, path: shown, works: works) }
    }

    private func transfer(_ file: WantedFile, of id: ItemID, path: String, works: Set<Work>) async {
        let token = meter.begin(id, path: path, direction: .upload, total: file.state.size)
        var content: ReadContent?
        let verdict: Verdict
        do throws(UploadError) {
            content = try await uploader.sendLarge(
                file.place,
                of: id,
                expecting: file.state,
                hasWriter: file.hasWriter,
                dataless: try await datalessParts(of: file),
                token: token
            )
            verdict = .again
        } catch {
            switch error {
            case .changed: verdict = .later(.milliseconds(500))
            case .lacking:
                synchronizer.noteLacking(file)
                verdict = .again
            case .unreadable(let why):
                problems[id] = ItemProblem(path: path, reason: "cannot be read: \(why)")
                verdict = .failed
            case .cloud(let cloudError):
                noteCloudProblem(id, path, cloudError)
                verdict = Self.verdict(cloudError)
            }
        }
        meter.end(token)
        transferTasks[id] = nil
        synchronizer.transferEnded(id, at: file.place, works, content: content, verdict)
    }

    /// A connection that is lost says nothing of the item: with the next one it is tried again, however often that was so.
    static func verdict(_ error: CloudError) -> Verdict {
        switch error {
        case .offline, .cancelled: .later(.seconds(5))
        case .stalled, .revoked, .unauthorized, .wrongServer, .serverFull, .quotaExceeded, .rejected, .malformed,
            .tooNew, .notFound:
            .failed
        }
    }

    func noteCloudProblem(_ id: ItemID, _ path: String, _ error: CloudError) {
        switch error {
        case .serverFull, .quotaExceeded, .rejected, .malformed, .tooNew, .notFound:
            problems[id] = ItemProblem(path: path, reason: "cannot be sent: \(error)")
        case .offline, .stalled, .revoked, .unauthorized, .wrongServer, .cancelled: break
        }
        logger.info("a transfer ended early", metadata: ["path": "\(path)", "why": "\(error)"])
    }

    // MARK: What people are told

    func settled(_ item: ItemID, _ key: InodeKey?) {
        problems[item] = nil
        // What was brought together for it is not wanted any more.
        if let left = downloaded[item], !isWanted(left, item) {
            downloaded[item] = nil
            synchronizer.device.discard(left.name)
        }
        host.endCreating(key, item)
    }

    /// Something of the item may have been sent, while this is still to be applied.
    private func isWanted(_ content: DownloadedContent, _ item: ItemID) -> Bool {
        guard let remote = (try? replica.database.remote(item)) ?? nil, !remote.isDeleted,
            remote.content.revision == content.revision
        else { return false }
        return ((try? replica.database.synced(item)) ?? nil)?.content.revision != content.revision
    }

    func noteProblem(_ item: ItemID, at place: LocalPlace?, _ reason: String) {
        let shown = place.flatMap { path(of: $0) } ?? remotePath(of: item)
        problems[item] = ItemProblem(path: shown.description, reason: reason)
        logger.warning("an item cannot sync", metadata: ["path": "\(shown)", "why": "\(reason)"])
    }
}
