internal import FileCoordination
internal import Logging
internal import SyncEngine
internal import UbiquityControl
internal import UbiquityModel

/// From a line on the control socket to its answer.
extension UbiquityService {
    nonisolated func handle(_ line: [UInt8], _ connection: ControlConnection) async {
        do throws(ControlError) {
            let head = try ControlCoding.decode(RequestHead.self, from: line)
            guard head.v <= FormatVersion.control else {
                throw ControlError(
                    "device service",
                    "it is older than this program",
                    remedy: "`ubiquity down`, then `ubiquity up DIR`"
                )
            }
            try await answer(head.verb, line, connection)
        } catch {
            connection.fail(error)
        }
    }

    private nonisolated func answer(
        _ verb: String,
        _ line: [UInt8],
        _ connection: ControlConnection
    ) async throws(ControlError) {
        let progress: @Sendable (ControlProgress) -> Void = { connection.progress($0) }
        switch verb {
        case MountRequest.verb: connection.answer(try await mount(try decode(line), progress: progress))
        case UnmountRequest.verb: connection.answer(try await unmount(try decode(UnmountRequest.self, line).mountPoint))
        case StopRequest.verb:
            try await prepareStop(try decode(line))
            connection.answer(Nothing())
            await stopSoon()
        case SignOutRequest.verb: connection.answer(try await signOut())
        case OfflineRequest.verb:
            try await setOffline(try decode(OfflineRequest.self, line).isOn)
            connection.answer(Nothing())
        case UnsentRequest.verb: connection.answer(UnsentRequest.Answer(count: await unsentCount()))
        case StatusRequest.verb: connection.answer(await report())
        case ActivityRequest.verb: connection.answer(await activity())
        case ItemStatusRequest.verb: connection.answer(await itemStatus(try decode(line)))
        case DownloadRequest.verb: connection.answer(await download(try decode(line), progress: progress))
        case EvictRequest.verb: connection.answer(await evict(try decode(line)))
        case PinRequest.verb: connection.answer(await setPinned(try decode(line)))
        case SyncRequest.verb:
            try await sync(try decode(line), progress: progress)
            connection.answer(Nothing())
        case ConflictsRequest.verb: connection.answer(try await conflicts())
        case VersionsRequest.verb: connection.answer(try await versions(try decode(line)))
        case VersionContentRequest.verb:
            let descriptor = try await versionContent(try decode(line))
            connection.answer(Nothing(), descriptor: descriptor)
        case RestoreVersionRequest.verb:
            try await restoreVersion(try decode(line))
            connection.answer(Nothing())
        case ResolveRequest.verb:
            try await resolve(try decode(line))
            connection.answer(Nothing())
        case DeletedRequest.verb: connection.answer(try await deleted())
        case UndeleteRequest.verb: connection.answer(await undelete(try decode(line)))
        case HeldDeletionsRequest.verb:
            try await heldDeletions(try decode(line))
            connection.answer(Nothing())
        case UbiquityControl.ClaimRequest.verb: connection.answer(try await claim(try decode(line), connection))
        case ReleaseClaimsRequest.verb:
            await broker.releaseAll(of: PartyID(number: connection.id))
            connection.answer(Nothing())
        case ClaimsRequest.verb: connection.answer(await claims())
        case PolicyRequest.verb: connection.answer(try await policyRules())
        case SetPolicyRequest.verb:
            try await setPolicy(try decode(line))
            connection.answer(Nothing())
        case ResetPolicyRequest.verb:
            try await resetPolicy()
            connection.answer(Nothing())
        case PackagesRequest.verb: connection.answer(try await packages(try decode(line)))
        case ReloadSettingsRequest.verb:
            try await reloadSettings()
            connection.answer(Nothing())
        default:
            throw ControlError(
                verb,
                "the device service does not know it",
                remedy: "`ubiquity down`, then `ubiquity up DIR`"
            )
        }
    }

    private nonisolated func decode<Request: ControlRequest>(_ line: [UInt8]) throws(ControlError) -> Request {
        try decode(Request.self, line)
    }

    private nonisolated func decode<Request: ControlRequest>(
        _ type: Request.Type,
        _ line: [UInt8]
    ) throws(ControlError) -> Request {
        try ControlCoding.decode(RequestEnvelope<Request>.self, from: line).arguments
    }

    // MARK: - Paths

    /// The mounted container that a path lies in, and its path there.
    func locate(_ item: ItemArgument) throws(ControlError) -> (MountedContainer, ItemPath) {
        for path in [item.path, item.target].compactMap({ $0 }) {
            guard let entry = enclosing(path), let names = path.relative(to: entry.mountPoint) else { continue }
            guard !isSignedOut else { throw ControlError("\(item.typed)", EngineError.signedOut) }
            guard let present = mounted[entry.container] else {
                throw failures[entry.container]
                    ?? ControlError(.tryAgain, "\(entry.mountPoint)", "it is just being mounted")
            }
            var result = ItemPath.root
            for bytes in names {
                do throws(NameError) { result = result.appending(try Name(bytes: bytes)) } catch {
                    throw ControlError("\(item.typed)", "\(error)")
                }
            }
            return (present, result)
        }
        throw ControlError("\(item.typed)", "not in a mounted container", remedy: "`ubiquity status` lists the mounts")
    }

    /// The innermost mount around a path.
    private func enclosing(_ path: ControlPath) -> MountTable.Entry? {
        table.entries.filter { path.relative(to: $0.mountPoint) != nil }.max {
            $0.mountPoint.bytes.count < $1.mountPoint.bytes.count
        }
    }

    /// What is mounted, in the order of the containers' names.
    var present: [MountedContainer] { mounted.values.sorted { $0.entry.container < $1.entry.container } }
}
