import Driver
import Foundation
import Glibc
import Replica
import Synchronization
import SystemPackage
import TestSupport
import UbiquityModel

/// The service's part, as a test wants it: remembers what it was told, and gives content when the test says so.
final class TestHost: DriverHost {
    enum Delivery: Sendable, Equatable {
        case atOnce
        /// Until the test calls `release`.
        case held
        case failing(Errno)
    }

    struct Orphan: Sendable {
        var key: InodeKey
        var name: Name
        var bytes: [UInt8]
    }

    fileprivate struct Waiter: Sendable {
        var file: PlaceholderFile
        var range: Range<Int64>
        var completion: @Sendable (Errno?) -> Void
    }

    struct State: Sendable {
        var changes: [LocalChange] = []
        var deleted: [Name] = []
        var orphans: [Orphan] = []
        var closed: [InodeKey] = []
        var contents: [RevisionID: [UInt8]] = [:]
        var delivery = Delivery.atOnce
        var asked: [Range<Int64>] = []
        var cancelled = 0
        var opened = 0
        var openedEnds = 0
        var forbiddenPrograms = false
        var claims: Set<ItemPath> = []
        var controls: [String] = []
        var listings: [ItemPath: VersionListing] = [:]
        var removedVersions: [RevisionID] = []
        var returnedVersions: [RevisionID] = []
        /// Their content never comes; of which of them that was called off.
        var stalledVersions: Set<RevisionID> = []
        var calledOffVersions: [RevisionID] = []
        /// Why none can be changed.
        var versionFailure: Errno?
        var packageIndexes: [RevisionID: PackageIndex] = [:]
        /// In any folder.
        var cloudNames: [Name] = []
        var unmounted = 0
        fileprivate var waiters: [Waiter] = []
        fileprivate var openWaiters: [@Sendable (Errno?) -> Void] = []
    }

    let state = Mutex(State())
    /// Completions come from a thread that is none of the driver's.
    private let queue = DispatchQueue(label: "test host")

    var changes: [LocalChange] { state.withLock { $0.changes } }
    func forgetChanges() { state.withLock { $0.changes = [] } }

    func beginMove() {}
    func endMove() {}
    func changed(_ change: LocalChange) { state.withLock { $0.changes.append(change) } }

    // MARK: Content

    func needContent(
        _ file: PlaceholderFile,
        range: Range<Int64>,
        waitsForAuthor: Bool,
        threadID: Int32,
        completion: @escaping @Sendable (Errno?) -> Void
    ) -> ContentRequest {
        if state.withLock({ $0.forbiddenPrograms }) {
            completion(.noData)
            return ContentRequest(cancel: {})
        }
        let delivery = state.withLock { state in
            state.asked.append(range)
            if state.delivery == .held {
                state.waiters.append(Waiter(file: file, range: range, completion: completion))
            }
            return state.delivery
        }
        switch delivery {
        case .atOnce: queue.async { [self] in completion(fill(file, range)) }
        case .failing(let error): queue.async { completion(error) }
        case .held: break
        }
        return ContentRequest { [self] in state.withLock { $0.cancelled += 1 } }
    }

    private func fill(_ file: PlaceholderFile, _ range: Range<Int64>) -> Errno? {
        guard let content = state.withLock({ $0.contents[file.placeholder.revision] }) else { return .ioError }
        do throws(Errno) {
            for part in file.missing(in: range) {
                let bytes = Array(content[Int(part.lowerBound)..<Int(part.upperBound)])
                let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
                defer { buffer.deallocate() }
                buffer.copyBytes(from: bytes)
                try file.write(UnsafeRawBufferPointer(buffer), at: part.lowerBound)
            }
            return nil
        } catch {
            return error
        }
    }

    /// Serves everything that is held, now and later.
    func release() {
        let waiters = state.withLock { state in
            state.delivery = .atOnce
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.completion(fill(waiter.file, waiter.range)) }
    }

    var waiting: Int { state.withLock { $0.waiters.count } }

    func presentRanges(of key: InodeKey, _ placeholder: Placeholder) -> ByteRangeSet { ByteRangeSet() }
    func datalessOpened(_ file: PlaceholderFile, threadID: Int32) { state.withLock { $0.opened += 1 } }
    func datalessClosed(_ file: PlaceholderFile) { state.withLock { $0.openedEnds += 1 } }

    // MARK: Coordination

    var claimsExist: Bool { state.withLock { !$0.claims.isEmpty } }

    func openWaits(
        path: ItemPath,
        forWriting: Bool,
        mayWait: Bool,
        threadID: Int32,
        completion: @escaping @Sendable (Errno?) -> Void
    ) -> ContentRequest? {
        state.withLock { state in
            guard state.claims.contains(path) else { return nil }
            if !mayWait {
                completion(.wouldBlock)
                return ContentRequest {}
            }
            state.openWaiters.append(completion)
            return ContentRequest {}
        }
    }

    var openWaiting: Int { state.withLock { $0.openWaiters.count } }

    func endClaims() {
        let waiters = state.withLock { state in
            state.claims = []
            defer { state.openWaiters = [] }
            return state.openWaiters
        }
        for waiter in waiters { waiter(nil) }
    }

    func entryChangeRefused(paths: [ItemPath], threadID: Int32) -> Bool {
        state.withLock { state in paths.contains { state.claims.contains($0) } }
    }

    func closed(key: InodeKey) { state.withLock { $0.closed.append(key) } }

    // MARK: Attributes and versions

    func itemAttribute(
        _ name: ItemAttributeName,
        key: InodeKey,
        parent: InodeKey,
        itemName: Name,
        completion: @escaping @Sendable (Result<[UInt8], Errno>) -> Void
    ) {
        queue.async { completion(.success(Array("\(name.rawValue) of \(itemName)".utf8))) }
    }

    func control(_ verb: String, parent: InodeKey, name: Name) -> Errno? {
        guard verb == "download" else { return .invalidArgument }
        state.withLock { $0.controls.append("\(verb) \(name)") }
        return nil
    }

    func versions(of path: ItemPath, completion: @escaping @Sendable (Result<VersionListing, Errno>) -> Void) {
        let listing = state.withLock { $0.listings[path] }
        queue.async { completion(listing.map { .success($0) } ?? .failure(.noSuchFileOrDirectory)) }
    }

    func openVersion(
        path: ItemPath,
        revision: RevisionID,
        threadID: Int32,
        completion: @escaping @Sendable (Result<Int32, Errno>) -> Void
    ) -> ContentRequest {
        guard !state.withLock({ $0.stalledVersions.contains(revision) }) else {
            return ContentRequest { [self] in state.withLock { $0.calledOffVersions.append(revision) } }
        }
        deliver(state.withLock { $0.contents[revision] }, completion)
        return ContentRequest(cancel: {})
    }

    private func deliver(_ content: [UInt8]?, _ completion: @escaping @Sendable (Result<Int32, Errno>) -> Void) {
        queue.async {
            guard let content else { return completion(.failure(.noSuchFileOrDirectory)) }
            let name = "/tmp/driver-test-\(RevisionID.random())"
            do {
                try Files.write(content, to: name)
                let descriptor = try Files.open(name, O_RDONLY)
                unlink(name)
                completion(.success(descriptor))
            } catch {
                completion(.failure(.ioError))
            }
        }
    }

    func packageIndex(of version: ItemVersion, completion: @escaping @Sendable (Result<PackageIndex, Errno>) -> Void) {
        let index = state.withLock { $0.packageIndexes[version.revision] }
        queue.async { completion(index.map { .success($0) } ?? .failure(.networkDown)) }
    }

    func openPart(
        _ part: Range<Int64>,
        of version: ItemVersion,
        threadID: Int32,
        completion: @escaping @Sendable (Result<Int32, Errno>) -> Void
    ) -> ContentRequest {
        let content = state.withLock { $0.contents[version.revision] }
        deliver(content.map { Array($0[Int(part.lowerBound)..<Int(part.upperBound)]) }, completion)
        return ContentRequest(cancel: {})
    }

    func changeVersion(
        _ change: VersionChange,
        path: ItemPath,
        version: ItemVersion,
        threadID: Int32,
        completion: @escaping @Sendable (Errno?) -> Void
    ) {
        let failure = state.withLock { state in
            guard state.versionFailure == nil else { return state.versionFailure }
            switch change {
            case .remove: state.removedVersions.append(version.revision)
            case .bringBack: state.returnedVersions.append(version.revision)
            }
            state.listings[path]?.versions.removeAll { $0.revision == version.revision }
            return nil
        }
        queue.async { completion(failure) }
    }

    func aboutToDelete(key: InodeKey, parent: InodeKey, name: Name, isLastName: Bool) {
        state.withLock { $0.deleted.append(name) }
    }
    func deletionFailed(key: InodeKey) {}

    func orphanWritten(key: InodeKey, lastParent: InodeKey, lastName: Name, descriptor: consuming OwnedDescriptor) {
        let raw = descriptor.raw
        let bytes = [UInt8](unsafeUninitializedCapacity: 1 << 16) { room, count in
            count = max(0, pread(raw, room.baseAddress, room.count, 0))
        }
        state.withLock { $0.orphans.append(Orphan(key: key, name: lastName, bytes: bytes)) }
    }

    func cloudName(like folded: FoldedName, in folder: InodeKey) throws(Errno) -> Name? {
        state.withLock { $0.cloudNames.first { $0.folded == folded } }
    }

    func unmounted() { state.withLock { $0.unmounted += 1 } }
}
