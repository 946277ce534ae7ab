import CLinux
import Driver
import Foundation
import Glibc
import Logging
import Replica
import Synchronization
import SystemPackage
import TestSupport
import Testing
import UbiquityModel

/// Mounts are possible here: what the tests of the driver need.
enum Requirements {
    static let fuse: ConditionTrait = .enabled(if: access("/dev/fuse", F_OK) == 0, "there is no /dev/fuse")
    static var isRoot: Bool { geteuid() == 0 }
}

/// A replica in a folder of its own, mounted, with a host that does what the test says. Always unmounted at the end.
final class Mounted: Sendable {
    let folder: String
    let replica: Replica
    let host: TestHost
    let mount: Mount

    var root: String { folder + "/mnt" }
    var tree: String { replica.treePath }

    func path(_ name: String) -> String { root + "/" + name }
    func backing(_ name: String) -> String { tree + "/" + name }

    init(
        prepare: (Replica) throws -> Void = { _ in },
        showVersions: Bool = false,
        options: [String] = [],
        mode: DriverMode? = nil,
        isCaseInsensitive: Bool = false
    ) throws {
        folder = "/tmp/ubiquity-driver-\(RevisionID.random().description.prefix(12))"
        try Files.makeFolder(folder)
        try Files.makeFolder(folder + "/mnt")
        replica = try Replica(directory: folder + "/replica")
        try prepare(replica)
        host = TestHost()
        mount = Mount(
            MountConfiguration(
                mountPoint: folder + "/mnt",
                containerName: "Test",
                showVersions: showVersions,
                options: options,
                mode: mode ?? DriverMode(named: getenv("UBIQUITY_DRIVER").map { String(cString: $0) }),
                isCaseInsensitive: isCaseInsensitive
            ),
            replica: replica,
            host: host,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        do {
            try mount.start()
        } catch {
            _ = try? run("rm", "-rf", folder)
            throw error
        }
    }

    func end() {
        mount.stop()
        _ = try? run("rm", "-rf", folder)
    }

    // MARK: Making and applying

    /// A dataless file, published as the engine would.
    @discardableResult
    func makeDataless(
        _ name: String,
        _ content: [UInt8],
        mode: UInt16 = 0o644,
        in parent: InodeKey? = nil
    ) throws -> LocalState {
        let revision = RevisionID.random()
        host.state.withLock { $0.contents[revision] = content }
        let placeholder = Placeholder(
            revision: revision,
            generation: 1,
            size: Int64(content.count),
            modified: Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_789),
            mode: mode
        )
        let staged = try replica.staging.makePlaceholder(placeholder)
        return try publish(staged.name, name, parent: parent)
    }

    func stage(_ content: [UInt8], mode: UInt16 = 0o644) throws -> String {
        let file = try replica.staging.makeFile()
        try Files.write(content, descriptor: file.descriptor.raw, path: file.name)
        try InodeMode.set(file.descriptor.raw, mode, .file)
        return file.name
    }

    @discardableResult
    func publish(
        _ staged: String,
        _ name: String,
        parent: InodeKey? = nil,
        expecting: UbiquityModel.Expectation = .absent
    ) throws -> LocalState {
        let mutation = Mutation.publish(
            staged: staged,
            parent: parent ?? replica.tree.rootKey,
            name: try Name(name),
            expecting: expecting
        )
        return try #require(try apply(mutation).get().state)
    }

    func apply(_ mutation: Mutation) throws -> Result<MutationResult, MutationFailure> {
        try outcome { mount.apply(mutation, completion: $0) }
    }

    func apply(_ mutations: [Mutation]) throws -> [Result<MutationResult, MutationFailure>] {
        try outcome { mount.apply(mutations, completion: $0) }
    }

    func evict(_ name: String, _ state: LocalState) throws -> Result<MutationResult, MutationFailure> {
        let revision = RevisionID.random()
        let content = try Files.read(backing(name))
        host.state.withLock { $0.contents[revision] = content }
        return try evict(
            name,
            state,
            as: Placeholder(
                revision: revision,
                generation: 1,
                size: state.size,
                modified: state.modified,
                mode: state.mode
            )
        )
    }

    func evict(
        _ name: String,
        _ state: LocalState,
        as placeholder: Placeholder
    ) throws -> Result<MutationResult, MutationFailure> {
        try evict(in: replica.tree.rootKey, Self.name(name), expecting: LocalEvidence(state), as: placeholder)
    }

    func evict(
        in parent: InodeKey,
        _ name: Name,
        expecting evidence: LocalEvidence,
        as placeholder: Placeholder
    ) throws -> Result<MutationResult, MutationFailure> {
        try outcome { mount.evict(in: parent, name, expecting: evidence, as: placeholder, completion: $0) }
    }

    private func outcome<Value: Sendable>(
        _ begin: (@escaping @Sendable (Value) -> Void) -> Void
    ) throws -> Value {
        let slot = Mutex<Value?>(nil)
        let box = Box(slot)
        begin { result in box.value.withLock { $0 = result } }
        return try eventually("the mutation is done") { box.value.withLock { $0 } }
    }

    private final class Box<Value: Sendable>: Sendable {
        let value: Mutex<Value?>
        init(_ value: consuming Mutex<Value?>) { self.value = value }
    }

    static func name(_ text: String) -> Name {
        guard let name = try? Name(text) else { preconditionFailure("a test uses a name that is none") }
        return name
    }

    func observe(_ name: String) throws -> LocalState {
        try #require(try replica.tree.observe(in: replica.tree.rootDescriptor, Self.name(name)))
    }
}

/// Runs a test on a fresh mount.
func mounted(
    showVersions: Bool = false,
    options: [String] = [],
    isCaseInsensitive: Bool = false,
    prepare: (Replica) throws -> Void = { _ in },
    _ body: (Mounted) throws -> Void
) throws {
    let mounted = try Mounted(
        prepare: prepare,
        showVersions: showVersions,
        options: options,
        isCaseInsensitive: isCaseInsensitive
    )
    defer { mounted.end() }
    try body(mounted)
}

/// Runs `body` on a thread of its own, since it may block in the kernel.
final class Background<Value: Sendable>: @unchecked Sendable {
    // Unchecked: `value` is guarded by `condition`.
    private let condition = NSCondition()
    private var value: Result<Value, any Error>?

    init(_ body: @escaping @Sendable () throws -> Value) {
        Thread.detachNewThread { [self] in
            let result = Result { try body() }
            condition.withLock {
                value = result
                condition.broadcast()
            }
        }
    }

    var isDone: Bool { condition.withLock { value != nil } }

    func get(within limit: Duration = .seconds(20)) throws -> Value {
        let deadline = Date(timeIntervalSinceNow: limit.seconds)
        condition.lock()
        while value == nil, condition.wait(until: deadline) {}
        let result = value
        condition.unlock()
        guard let result else { throw TestFailure("not done within \(limit)") }
        return try result.get()
    }
}

/// The errno of a system call that returns -1.
func failure(_ call: @autoclosure () -> Int32) -> Int32? {
    errno = 0
    return call() < 0 ? errno : nil
}

/// The errno of an open; nil if it succeeds, after which the file is closed.
func openFailure(_ path: String, _ flags: Int32) -> Int32? {
    let file = open(path, flags, 0o644)
    if file < 0 { return errno }
    close(file)
    return nil
}

/// glibc's, with strings, as Glibc's module lacks it.
func setxattr(_ path: String, _ name: String, _ value: String, _ size: Int, _ flags: Int32) -> Int32 {
    let item = clinux_open_at(AT_FDCWD, path, Int32(CLINUX_O_PATH), 0)
    guard item >= 0 else { return -1 }
    defer { close(item) }
    let result = clinux_xattr_set(item, name, value, size, flags)
    if result < 0 { errno = -result }
    return result < 0 ? -1 : 0
}

func removexattr(_ path: String, _ name: String) -> Int32 {
    let item = clinux_open_at(AT_FDCWD, path, Int32(CLINUX_O_PATH), 0)
    guard item >= 0 else { return -1 }
    defer { close(item) }
    let result = clinux_xattr_remove(item, name)
    if result < 0 { errno = -result }
    return result < 0 ? -1 : 0
}
