import CLinux
import Glibc
import TestSupport

/// Makes histories. The same seed makes the same one.
struct StepGenerator {
    /// What a history may contain together: each of these makes some answer uncertain that the others want to compare.
    enum Flavor: Sendable, CaseIterable {
        /// Where holes are is compared. (Content that has gone and come back has none.)
        case holes
        /// Room is allocated in advance. (What of it counts as a hole depends on what is in the page cache.)
        case allocation
        /// Content goes and comes back, and changes arrive.
        case travel
    }

    static let slots = 5
    static let mappings = 2
    /// What mostly are files, and what mostly are folders; but each is used for everything now and then.
    private static let files = ["a", "b", "c", "d/a", "d/b", "d/e/a", "g/a"]
    private static let folders = ["d", "d/e", "g", "d/f"]
    private static let oddities = [
        "a/", "d/", "d/.", "d/../b", ".", "g/none/x", "a/b", String(repeating: "n", count: 255),
        String(repeating: "n", count: 256),
    ]
    private static let attributes = [
        "user.one", "user.two", "user.ubiquity.package", "trusted.three", "security.four", "nonsense.five", "user.",
        "user." + String(repeating: "n", count: 250), "user." + String(repeating: "n", count: 251),
    ]
    private static let modes: [mode_t] =
        geteuid() == 0
        ? [0o644, 0o600, 0o755, 0o700, 0o444, 0o400, 0o200, 0o000, 0o555, 0o4755, 0o2755, 0o1777, 0o2644, 0o4555]
        // For a mount that lets in nobody else the kernel does not ask whether a folder may be passed through: names that it has cached
        // are found there. (It would with default_permissions, for a question after each change in a folder.)
        : [0o755, 0o755, 0o700, 0o711, 0o555, 0o500, 0o300, 0o100, 0o4755, 0o2755, 0o1777, 0o4555]
    /// Nor does it ask about fifos and sockets, which it opens by itself.
    private static let kinds: [NodeKind] = geteuid() == 0 ? NodeKind.allCases : [.file]

    private var random: SeededGenerator
    let flavor: Flavor

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        flavor = Flavor.allCases[Int(seed % UInt64(Flavor.allCases.count))]
    }

    mutating func history(_ count: Int) -> [Step] {
        let beginning: [Step] = [.makeFolder("d", 0o755), .makeFolder("d/e", 0o755), .makeFolder("g", 0o755)]
        return beginning + (0..<count).map { _ in step() }
    }

    // MARK: Arguments

    private mutating func number(_ limit: Int) -> Int { Int(random.next() % UInt64(limit)) }
    private mutating func isTrue(_ times: Int, of all: Int) -> Bool { number(all) < times }
    private mutating func any<Value>(_ values: [Value]) -> Value { values[number(values.count)] }
    private mutating func slot() -> Int { number(Self.slots) }
    private mutating func mapping() -> Int { number(Self.mappings) }
    private mutating func mode() -> mode_t {
        // setuid and setgid do not outlive the filling of a file by an ordinary user's service.
        any(Self.modes) & (flavor == .travel && geteuid() != 0 ? 0o777 : 0o7777)
    }

    /// Of few names, so that steps meet.
    private mutating func path() -> String {
        switch number(20) {
        case 0...12: any(Self.files)
        case 13...18: any(Self.folders)
        default: any(Self.oddities)
        }
    }

    private mutating func folder() -> String { isTrue(9, of: 10) ? any(Self.folders) : path() }
    private mutating func file() -> String { isTrue(9, of: 10) ? any(Self.files) : path() }

    /// Mostly small, some at the edges of pages, few beyond what fits into one request.
    private mutating func offset() -> Int {
        switch number(10) {
        case 0: 0
        case 1...5: number(10000)
        case 6: 4096 * number(6)
        case 7: 4096 * number(6) + 1
        case 8: number(100_000)
        default: number(2_000_000)
        }
    }

    private mutating func count() -> Int {
        switch number(10) {
        case 0: number(10)
        case 1...6: number(6000)
        case 7, 8: 4096 * (1 + number(4))
        default: isTrue(1, of: 4) ? 1_500_000 : number(70_000)
        }
    }

    private mutating func content() -> Content { Content(seed: random.next() % 1000, count: count()) }

    private mutating func moment() -> Moment {
        let seconds = any([1_000_000_000, 1_234_567_890, 1, 0, -1000, 5_000_000_000])
        return Moment(seconds: seconds + number(1000), nanoseconds: number(1_000_000_000))
    }

    private mutating func flags() -> OpenFlags {
        var raw = any([O_RDONLY, O_WRONLY, O_RDWR, O_RDWR, O_RDWR])
        if isTrue(3, of: 4) { raw |= O_CREAT }
        for (flag, times) in [(O_EXCL, 1), (O_TRUNC, 2), (O_APPEND, 2), (O_NOFOLLOW, 1), (O_DIRECTORY, 1), (O_SYNC, 1)]
        where isTrue(times, of: 12) {
            raw |= flag
        }
        if isTrue(1, of: 40) { raw |= Int32(CLINUX_O_PATH) }
        // Nobody reads or writes at the other end of a fifo.
        return OpenFlags(raw: raw | O_NONBLOCK)
    }

    // MARK: Steps

    private mutating func step() -> Step {
        switch number(10) {
        case 0, 1: opening()
        case 2, 3, 4: transfer()
        case 5: mapped()
        case 6, 7: naming()
        case 8: attribute()
        default: flavor == .travel ? travel() : naming()
        }
    }

    private mutating func opening() -> Step {
        switch number(16) {
        case 0, 1: .close(slot())
        case 2, 3: .describe(slot())
        case 4:
            .open(
                slot(),
                folder(),
                OpenFlags(
                    raw: OpenFlags.unnamed | any([O_RDWR, O_RDWR, O_WRONLY, O_RDONLY]) | any([0, 0, O_EXCL, O_APPEND])
                ),
                mode: mode()
            )
        default: .open(slot(), file(), flags(), mode: mode())
        }
    }

    private mutating func transfer() -> Step {
        switch number(20) {
        case 0, 1: return .read(slot(), count: count())
        case 2, 3: return .write(slot(), content())
        case 4, 5, 6: return .readAt(slot(), offset: offset(), count: count())
        case 7, 8, 9: return .writeAt(slot(), offset: offset(), content())
        case 10, 11:
            let whence = any(
                [.start, .current, .end] + (flavor == .holes ? [.data, .hole, .data, .hole] : []) as [Whence]
            )
            return .seek(slot(), offset: isTrue(1, of: 10) ? -offset() : offset(), whence)
        case 12: return .setSize(slot(), isTrue(1, of: 20) ? -1 : offset())
        case 13: return .truncate(file(), isTrue(1, of: 20) ? -1 : offset())
        case 14, 15: return allocation()
        case 16, 17:
            return .copy(slot(), offset: offset(), to: slot(), at: offset(), count: count())
        case 18: return .synchronize(slot(), dataOnly: isTrue(1, of: 2))
        default: return .lock(slot())
        }
    }

    private mutating func allocation() -> Step {
        let kinds: [Allocation] = flavor == .holes ? [.punch] : Allocation.allCases
        return .allocate(slot(), any(kinds), offset: offset(), count: count())
    }

    private mutating func mapped() -> Step {
        switch number(6) {
        case 0: .map(mapping(), from: slot(), isShared: isTrue(3, of: 4), isWritable: isTrue(3, of: 4))
        case 1, 2: .peek(mapping(), offset: number(Player.mappedBytes), count: number(9000))
        case 3, 4:
            .poke(
                mapping(),
                offset: number(Player.mappedBytes),
                Content(seed: random.next() % 1000, count: 1 + number(9000))
            )
        default: .unmap(mapping(), isSynchronized: isTrue(1, of: 2))
        }
    }

    private mutating func naming() -> Step {
        switch number(22) {
        case 21: .setMask(any([0o022, 0o077, 0o027, 0]))
        case 0, 1: .unlink(file())
        case 2, 3: .makeFolder(folder(), mode())
        case 4: .removeFolder(folder())
        case 5: .rename(path(), path(), .replace)
        case 6: .rename(file(), file(), .replace)
        case 7: .rename(folder(), folder(), .replace)
        case 8: .rename(path(), path(), .noReplace)
        case 9: .rename(path(), path(), .exchange)
        case 10, 11: .hardLink(file(), file(), follows: isTrue(1, of: 2))
        case 12:
            .makeLink(
                to: any(["a", "b", "d", "e/a", ".", "nowhere", "a/", String(repeating: "x/", count: 1000)]),
                at: path()
            )
        case 13: .readLink(path())
        case 14: .makeNode(path(), any(Self.kinds), mode())
        case 15: .list(folder())
        case 16: .enter(folder())
        case 17, 18: .leave
        case 19: .nameOpen(slot(), path())
        default: .look(path())
        }
    }

    private mutating func attribute() -> Step {
        // The ACL of an item whose owner may not read and write it shows that he may, for an ordinary user's service must.
        switch number(geteuid() == 0 ? 15 : 13) {
        case 13: .setAccessList(path(), isDefault: isTrue(1, of: 2), accessList())
        case 14:
            any([
                .attribute(path(), AccessList.attribute, room: 10000), .removeAttribute(path(), AccessList.attribute),
                .removeAttribute(path(), AccessList.defaultAttribute),
            ])
        case 0, 1: .look(path())
        case 2: .access(path(), Int32(number(8)))
        case 3: .setMode(path(), mode())
        case 4: .setModeOf(slot(), mode())
        case 5: .setOwner(path(), any([geteuid(), 65534, uid_t.max]), any([getegid(), 65534, gid_t.max]))
        case 6: .setTimes(path(), moment(), follows: isTrue(1, of: 2))
        case 7: .setTimesOf(slot(), moment())
        case 8, 9:
            .setAttribute(
                path(),
                any(Self.attributes),
                Content(seed: random.next() % 1000, count: any([0, 1, 100, 1000, 5000, 70_000])),
                flags: any([0, 0, 0, Int32(CLINUX_XATTR_CREATE), Int32(CLINUX_XATTR_REPLACE)]),
                follows: isTrue(1, of: 2)
            )
        case 10: .attribute(path(), any(Self.attributes), room: any([0, 1, 100, 10000]))
        case 11: .attributes(path())
        default: .removeAttribute(path(), any(Self.attributes))
        }
    }

    private mutating func accessList() -> AccessList {
        func permissions() -> UInt16 { UInt16(number(8)) }
        return AccessList(
            owner: permissions(),
            group: permissions(),
            other: permissions(),
            user: permissions(),
            mask: permissions()
        )
    }

    private mutating func travel() -> Step {
        switch number(8) {
        case 0, 1: .receive(file(), content())
        case 2: .forget
        default: .evict(file())
        }
    }
}
