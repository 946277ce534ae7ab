internal import FileCoordination
internal import SyncEngine
internal import UbiquityControl
internal import UbiquityModel

extension UbiquityService {
    /// Waits for claims on behalf of a connection, which they end with.
    func claim(
        _ request: UbiquityControl.ClaimRequest,
        _ connection: ControlConnection
    ) async throws(ControlError) -> UbiquityControl.ClaimRequest.Answer {
        let items = try await claimItems(request)
        let timeout = try TimeLimit.duration(seconds: request.timeoutSeconds)
        // The content first: others need not wait for a transfer. What is evicted before the grant comes again below.
        try await fetchContents(request, items)
        let party = PartyID(number: connection.id)
        let broker = broker
        let asked = FileCoordination.ClaimRequest(
            party: party,
            program: request.program,
            pid: connection.pid,
            within: request.outer.flatMap { ClaimID($0) },
            items: items,
            timeout: timeout
        )
        let isWatched = { @Sendable in connection.whenClosed("claims") { broker.ended(party) } }
        switch await broker.claim(asked, isKnown: isWatched) {
        case .refused(let refusal): throw Self.error(refusal, request)
        case .abandoned: throw ControlError(.tryAgain, "coordinate", "the connection ended")
        case .granted(let claim, let targets):
            do throws(ControlError) { try await fetchContents(request, items, at: targets) } catch {
                broker.release(claim)
                throw error
            }
            let paths = targets.compactMap { target in mounted[target.container.text]?.path(of: target.path) }
            guard paths.count == targets.count else {
                broker.release(claim)
                throw ControlError(.tryAgain, "coordinate", "a container was unmounted meanwhile")
            }
            return UbiquityControl.ClaimRequest.Answer(claim: claim.description, paths: paths)
        }
    }

    func claims() async -> [ClaimReport] {
        let listing = await broker.listing()
        return listing.map { claim in
            let holders: [ClaimHolder] =
                switch claim.state {
                case .held: []
                case .waiting(let holders): holders
                }
            return ClaimReport(
                isGranted: claim.state == .held,
                program: claim.program,
                pid: claim.pid,
                items: claim.items.map { access, target in
                    ClaimReport.Item(path: path(of: target), isWrite: access == .write)
                },
                waitsFor: holders.map(\.description)
            )
        }
    }

    private func path(of target: ClaimTarget) -> ControlPath {
        mounted[target.container.text]?.path(of: target.path) ?? ControlPath(bytes: target.path.bytes)
    }

    private func claimItems(_ request: UbiquityControl.ClaimRequest) async throws(ControlError) -> [ClaimItem] {
        var options = Set<ClaimOption>()
        for name in request.options {
            guard let option = ClaimOption(rawValue: name), option != .forUploading else {
                throw ControlError(.usage, "--option \(name)", "there is no such option")
            }
            options.insert(option)
        }
        var result = [ClaimItem]()
        for item in request.items {
            let access: ClaimAccess = item.isWrite ? .write : .read
            var argument = item.path
            if options.contains(.resolveSymlinks), let target = argument.target { argument.path = target }
            let (present, path): (MountedContainer, ItemPath)
            do throws(ControlError) { (present, path) = try locate(argument) } catch {
                guard error.status == .failed, failures.isEmpty else { throw error }
                throw ControlError(.usage, "\(item.path.typed)", "not in a container: coordination is not needed there")
            }
            let target = ClaimTarget(container: present.info.id, path: path)
            result.append(
                ClaimItem(
                    access,
                    target,
                    options: options.filter { $0.applies(to: access) },
                    package: await present.engine.enclosingPackage(of: path)
                )
            )
        }
        for option in options where !result.contains(where: { $0.options.contains(option) }) {
            throw ControlError(.usage, "--option \(option.rawValue)", "it does not apply to what is asked for")
        }
        return result
    }

    /// A coordinated read is granted only with the whole content here.
    private func fetchContents(
        _ request: UbiquityControl.ClaimRequest,
        _ items: [ClaimItem],
        at targets: [ClaimTarget]? = nil
    ) async throws(ControlError) {
        for (index, item) in items.enumerated() where item.access == .read && !item.options.contains(.metadataOnly) {
            let target = targets?[index] ?? item.target
            guard !target.path.isRoot, let present = mounted[target.container.text] else { continue }
            do throws(EngineError) {
                let status = try await present.engine.item(at: target.path)
                // A folder's claim covers its list of entries, not what is in them; a package is its content.
                guard status.kind != .folder, [.dataless, .downloading].contains(status.state) else { continue }
                try await present.engine.download(target.path) { _ in }
            } catch {
                throw ControlError("\(request.items[index].path.typed)", error)
            }
        }
    }

    private static func error(_ refusal: ClaimRefusal, _ request: UbiquityControl.ClaimRequest) -> ControlError {
        let what = request.items.count == 1 ? "\(request.items[0].path.typed)" : "coordinate"
        switch refusal {
        case .timedOut(let holders), .wouldWait(let holders):
            let names = holders.map(\.description).joined(separator: ", ")
            return ControlError(
                .tryAgain,
                what,
                names.isEmpty ? "the time limit passed" : "the time limit passed: \(names)"
            )
        case .deadlock(let holders):
            let names = holders.map(\.description).joined(separator: ", ")
            return ControlError(.tryAgain, what, "waiting would close a cycle: \(names)")
        case .deleted: return ControlError(what, "it was deleted meanwhile")
        case .tooManyWaiting: return ControlError(.tryAgain, what, "too many wait already")
        }
    }
}
