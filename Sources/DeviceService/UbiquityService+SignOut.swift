internal import CloudClient
internal import Driver
internal import Logging
internal import SyncEngine
internal import UbiquityControl

extension UbiquityService {
    /// The account ends here; the mounts do not, since programs have files open in them.
    ///
    /// 1. Programs are refused: nobody begins anything that the count below would miss.
    /// 2. The engines send and fetch nothing any more, and with the client's end nobody can, whatever asks it.
    /// 3. The table remembers whose the mounts are. The same account gets them back when it signs in, in another service: this one
    ///    stays what it is until it ends.
    func signOut() async throws(ControlError) -> SignOutRequest.Answer {
        importStop.ask()
        defer { importStop.takeBack() }
        return try await serially { () async throws(ControlError) in
            isSignedOut = true
            for present in present { present.mount.closeToPrograms() }
            for present in present { await present.engine.signOut() }
            await cloud.shutdown()
            await session.settle()
            var unsent = 0
            for present in present { unsent += await present.engine.unsentCount() }
            let home = home
            let replicas = try await blocking { () throws(ControlError) in
                guard let account = try Account.load(home) else { return [ContainerFolder]() }
                return try ContainerFolder.all(home, of: account)
            }
            table.signOut(replicas)
            try await saveTable()
            logger.notice(
                "signed out: the documents are no longer reachable, sign in again to get them back",
                metadata: ["unsent": "\(unsent)"]
            )
            return SignOutRequest.Answer(unsent: unsent, mounts: present.map(\.entry.mountPoint))
        }
    }
}
