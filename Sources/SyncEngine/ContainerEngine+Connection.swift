import CloudClient
import EngineCore
import Logging
import Replica
import SystemPackage
import UbiquityModel

/// The connection: a session, then a listing of what changed meanwhile, then the feed.
extension ContainerEngine {
    private static let listingLimit = 5000

    func connect() async {
        guard !Task.isCancelled else { return }
        var isReached = false
        do throws(CloudError) {
            let session = try await openSession()
            isReached = true
            failedConnections = 0
            // Another connection follows this one, and speaks for itself.
            guard !Task.isCancelled else { return }
            // One of two clones has another name from now on.
            if !session.deviceName.isEmpty { synchronizer.device.deviceName = session.deviceName }
            if let told = session.containers.first(where: { $0.id == container.id }) {
                // Whoever opened the session has written it down.
                populator.packages.declare { _ in told.packages }
            }
            becameReachable()
            handle(.connected)
            try await listFolders()
            try await list()
            // A folder may have been moved past the first listing.
            try await listFolders()
            guard !Task.isCancelled else { return }
            connectionProblem = nil
            endImports()
            handle(.caughtUp)
            searchKept()
            contentWatch.grew()
            try await follow()
            noteLost(.offline("the server ended the connection"))
        } catch {
            if !isReached { noteUnreachable(error) }
            noteLost(error)
        }
    }

    /// A server that is started anew is back before this counts: nobody's read fails for that.
    private static let connectionsUntilOffline = 2

    /// The server cannot be reached: programs that want something of it are told so at once (semantics section 12), and not when they have
    /// tried it themselves.
    private func noteUnreachable(_ error: CloudError) {
        guard !Task.isCancelled, case .offline(let why) = error else { return }
        failedConnections += 1
        if failedConnections >= Self.connectionsUntilOffline { becameUnreachable(why) }
    }

    private func noteLost(_ error: CloudError) {
        guard !Task.isCancelled else { return }
        listing.setObstacle(.networkDown)
        switch error {
        case .cancelled:
            return
        case .revoked, .unauthorized:
            connectionProblem = "\(error)"
            logger.error("the server refuses this device", metadata: ["why": "\(error)"])
            handle(.connectionRefused)
        case .offline, .stalled, .notFound, .rejected, .serverFull, .quotaExceeded, .tooNew, .wrongServer, .malformed:
            if connectionProblem == nil { logger.info("connection lost", metadata: ["why": "\(error)"]) }
            connectionProblem = "\(error)"
            handle(.connectionLost(jitter: Double.random(in: 0..<1)))
        }
    }

    /// Everything that changed since the last known position. A position that the server does not know is never rewound to: the
    /// whole listing is taken, and what the server lacks is offered again.
    private func list() async throws(CloudError) {
        if try await isKnownToBeRestored() { return try await listFromBeginning() }
        while true {
            let since = position == .beginning ? nil : position
            let page = try await cloud.changes(container.id, since: since, limit: Self.listingLimit)
            if page.unknownPosition { return try await listFromBeginning() }
            try await learnPackages(page.items, page.manifests)
            try record(page)
            if !page.more { return }
        }
    }

    /// Whether the server has lost what it said, though it knows up to where the feed was read: its log ends between that and what commits
    /// were answered, or what pages that were cut off had still to tell, or has gone on otherwise from there.
    private func isKnownToBeRestored() async throws(CloudError) -> Bool {
        var answered: LogPosition?
        do {
            if try synchronizer.isCloudRestored || replica.database.isComparing() { return true }
            answered = try replica.database.answeredPosition()
        } catch {
            throw .offline("the device's database: \(error)")
        }
        // What a pass that is still running was answered is not written down yet.
        if let unwritten = answeredPosition, unwritten.counter > answered?.counter ?? 0 { answered = unwritten }
        guard let answered, answered.counter > position.counter else { return false }
        return try await cloud.changes(container.id, since: answered, limit: 1).unknownPosition
    }

    private func listFromBeginning() async throws(CloudError) {
        // What a pass that is still running has seen and been answered is of before: written down after this, it would pass for agreed on.
        while synchronizer.isRunningPass { await withCheckedContinuation { passWaiters.append($0) } }
        await recordingBesideEnds()
        if Task.isCancelled { throw .cancelled }
        do {
            position = try await synchronizer.compareWithRestored { since in
                let page = try await self.cloud.changes(self.container.id, since: since, limit: Self.listingLimit)
                self.noteRefused(page.refused)
                try await self.learnPackages(page.items, page.manifests)
                return ListedPage(
                    items: page.items,
                    manifests: page.manifests,
                    position: page.position,
                    more: page.more
                )
            }
        } catch let error as CloudError {
            throw error
        } catch {
            throw .offline("the device's database: \(error)")
        }
        // Of the server as it was.
        answeredPosition = nil
        noteEverythingArrived()
    }

    private func follow() async throws(CloudError) {
        do {
            for try await page in cloud.feed(container.id, since: position) {
                if Task.isCancelled { throw CloudError.cancelled }
                if page.unknownPosition { throw CloudError.offline("the server was restored") }
                if let declaration = page.packages { await learn(declaration) }
                try await learnPackages(page.items, page.manifests)
                try record(page)
            }
        } catch let error as CloudError {
            throw error
        } catch is CancellationError {
            throw .cancelled
        } catch {
            throw .offline("\(error)")
        }
    }

    /// The container declares something else from now on.
    private func learn(_ declaration: PackageDeclaration) async {
        guard declaration != packages else { return }
        await keepPackages(declaration)
        populator.packages.declare { _ in declaration }
    }

    func noteRefused(_ items: [String]) {
        for refused in items {
            logger.error("the cloud holds an item that cannot be represented here", metadata: ["what": "\(refused)"])
        }
        refusedItems.formUnion(items)
    }

    private func record(_ page: ChangesPage) throws(CloudError) {
        noteRefused(page.refused)
        guard !page.items.isEmpty || page.position != position else { return }
        let arriving: [RemoteItem]
        do {
            // What was made on request has its row before it is asked for.
            recordPopulated()
            try noteUnlisted(page)
            arriving = try prepareForChanges(page.items)
            try synchronizer.remoteArrives(page.items)
            try replica.database.write(
                remote: page.items,
                manifests: page.manifests,
                position: page.position,
                head: page.more ? page.head : nil
            )
        } catch {
            // Nothing was recorded, so the next connection asks for the same again.
            throw .offline("the device's database: \(error)")
        }
        populator.cloudChanged(in: page.items.map(\.place.parent))
        position = page.position
        for item in page.items where !item.isAnnounced || item.isDeleted { host.filler.contentArrived(for: item.id) }
        synchronizer.remoteWritten(page.items)
        noteArrived(arriving)
        searchForNew(page.items, besides: arriving)
    }

    /// While what happened during the first listing is told: of folders that are new here, what lies in them may not be told at all.
    private func noteUnlisted(_ page: ChangesPage) throws(ReplicaError) {
        guard core.connection == .listing, populator.hasFolders else { return }
        let folders = page.items.filter { $0.content == .folder && !$0.isDeleted }
        var fresh: [ItemID] = []
        for folder in folders where try replica.database.remote(folder.id) == nil { fresh.append(folder.id) }
        guard !fresh.isEmpty else { return }
        try replica.database.addUnlisted(fresh)
        listing.add(fresh)
    }
}
