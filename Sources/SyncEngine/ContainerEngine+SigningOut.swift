import EngineCore
import SystemPackage

/// The end of the account on this device. The mount may live on, for what programs have open.
extension ContainerEngine {
    /// Nothing is sent or fetched from now on, whoever asks; who waits for content gets EACCES. What programs change is noted until
    /// `stop`, and is found again when the same account signs in.
    package func signOut() {
        isSignedOut = true
        host.filler.signOut()
        listing.setObstacle(.permissionDenied)
        handle(.switched(offline: true))
        for task in transferTasks.values { task.cancel() }
    }

    /// After `signOut`: how many changes made here the cloud does not have. Awaits the end of what was under way.
    package func unsentCount() async -> Int {
        for task in Array(transferTasks.values) { await task.value }
        while synchronizer.isRunningPass { await withCheckedContinuation { passWaiters.append($0) } }
        drainChanges()
        return unsentWork.count
    }

    /// Places that programs changed; the others are what others changed.
    var unsentWork: Set<Work> {
        Set(core.unfinished + core.parkedWork).filter { if case .place = $0 { true } else { false } }
    }
}
