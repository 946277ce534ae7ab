import Reconciliation
import Testing
import UbiquityModel

@Suite struct CommitStructureTests {
    @Test func `a taken name is answered with its holder`() throws {
        var world = CommitWorld()
        let (file, _) = try world.file("a")
        let (other, _) = try world.file("b")
        #expect(world.commit(world.fresh(), world.create(try place("a"), world.fresh(), "one")) == .nameTaken(by: file))
        #expect(world.commit(other, .move(to: try place("a"))) == .nameTaken(by: file))
        #expect(world.commit(world.fresh(), world.create(try place("a"), .folder)) == .nameTaken(by: file))
    }

    @Test func `nothing is put into a folder that is not there`() throws {
        var world = CommitWorld()
        let (file, _) = try world.file("a")
        let folder = try world.folder("f")
        _ = world.commit(folder, .delete(base: nil))
        #expect(
            world.commit(world.fresh(), world.create(try place("x", folder), world.fresh(), "one")) == .parentMissing
        )
        #expect(world.commit(file, .move(to: try place("x", folder))) == .parentMissing)
        #expect(world.commit(file, .move(to: try place("x", world.fresh()))) == .parentMissing)
        // A file is no folder.
        let (other, _) = try world.file("b")
        #expect(world.commit(other, .move(to: try place("x", file))) == .parentMissing)
    }

    @Test func `a folder never comes to lie in itself`() throws {
        var world = CommitWorld()
        let outer = try world.folder("outer")
        let inner = try world.folder("inner", in: outer)
        let deep = try world.folder("deep", in: inner)
        #expect(world.commit(outer, .move(to: try place("x", deep))) == .cycle)
        #expect(world.commit(outer, .move(to: try place("x", outer))) == .cycle)
        #expect(world.commit(deep, .move(to: try place("deep"))).item?.place.parent == .root)
        #expect(world.commit(outer, .move(to: try place("x", deep))).item != nil)
        #expect(world.violation == nil)
    }

    @Test func `a folder is not moved to where more folders lead to than can be looked at`() throws {
        var world = CommitWorld()
        let (folder, other) = (try world.folder("folder"), try world.folder("other"))
        let (file, _) = try world.file("file")
        var parents: [ItemID] = [.root]
        for _ in 0..<CommitLimits.depth + 10 { parents.append(try world.folder("d", in: try #require(parents.last))) }
        let deepest = try place("x", parents[CommitLimits.depth])
        guard case .invalid = world.commit(folder, .move(to: deepest)) else { throw WorldError(what: "it was moved") }
        #expect(world.commit(file, .move(to: deepest)).item != nil)
        #expect(world.commit(other, .move(to: try place("x", parents[CommitLimits.depth - 1]))).item != nil)
        #expect(world.violation == nil)
    }

    @Test func `concurrent moves of two folders into each other: the second is refused`() throws {
        var world = CommitWorld()
        let one = try world.folder("one")
        let two = try world.folder("two")
        #expect(world.commit(one, .move(to: try place("one", two))).item != nil)
        #expect(world.commit(two, .move(to: try place("two", one)), device: "bert") == .cycle)
    }

    @Test func `move against edit: both hold`() throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a")
        _ = world.commit(file, .move(to: try place("b")))
        let item = try #require(world.edit(file, base: base, "two", edited: 300, device: "bert").item)
        #expect(item.place.name == (try Name("b")))
        #expect(item.conflicts.isEmpty)
    }

    @Test func `a folder with something in it is not deleted`() throws {
        var world = CommitWorld()
        let folder = try world.folder("f")
        let (file, revision) = try world.file("a", in: folder)
        #expect(world.commit(folder, .delete(base: nil)) == .notEmpty)
        #expect(world.commit(file, .delete(base: revision)).item?.isDeleted == true)
        #expect(world.commit(folder, .delete(base: nil)).item?.isDeleted == true)
        #expect(world.commit(folder, .delete(base: nil)).item?.isDeleted == true)
        #expect(world.violation == nil)
    }

    @Test func `an announced file keeps its folder`() throws {
        var world = CommitWorld()
        let folder = try world.folder("f")
        let content = content(world.fresh(), "big").file
        _ = world.commit(
            world.fresh(),
            .announce(place: try place("a", folder), content: content, attributes: attributes(1))
        )
        #expect(world.commit(folder, .delete(base: nil)) == .notEmpty)
    }

    @Test func `a deletion of an older revision does not delete the newer one`() throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a")
        let item = try #require(world.edit(file, base: base, "two", edited: 300).item)
        #expect(world.commit(file, .delete(base: base), device: "bert") == .superseded(item))
        #expect(world.commit(file, .delete(base: nil), device: "bert") == .superseded(item))
    }

    @Test func `a deletion of another revision of the same content deletes`() throws {
        var world = CommitWorld()
        let (file, first) = try world.file("a", "one")
        let second: RevisionID = world.fresh()
        _ = world.edit(file, base: first, "two", as: second, edited: 200)
        _ = world.edit(file, base: second, "one", edited: 300)
        #expect(world.commit(file, .delete(base: first)).item?.isDeleted == true)
    }

    @Test func `an edit brings a deleted file back`() throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a", "one")
        _ = world.commit(file, .delete(base: base))
        // Unchanged bytes are no edit.
        #expect(world.edit(file, base: base, "one", edited: 300, device: "bert").item?.isDeleted == true)
        let item = try #require(world.edit(file, base: base, "two", edited: 300, device: "bert").item)
        #expect(!item.isDeleted)
        #expect(item.place == (try place("a")))
        #expect(world.violation == nil)
    }

    @Test func `an edit of a deleted file finds a free name, or asks for its folder`() throws {
        var world = CommitWorld()
        let folder = try world.folder("f")
        let (file, base) = try world.file("a.txt", in: folder, "one")
        _ = world.commit(file, .delete(base: base))
        let (other, revision) = try world.file("a.txt", in: folder, "other")
        let item = try #require(world.edit(file, base: base, "two", edited: 300).item)
        #expect(item.place.name == (try Name("a 2.txt")))
        _ = world.commit(file, .delete(base: world.current(file)))
        _ = world.commit(other, .delete(base: revision))
        _ = world.commit(folder, .delete(base: nil))
        #expect(world.edit(file, base: base, "three", edited: 400) == .parentMissing)
        #expect(
            world.commit(folder, .revive(place: try place("f"), attributes: attributes(1))).item?.isDeleted == false
        )
        #expect(world.edit(file, base: base, "three", edited: 400).item?.isDeleted == false)
        #expect(world.violation == nil)
    }

    @Test func `revive brings folders and links back, files by edits only`() throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a")
        _ = world.commit(file, .delete(base: base))
        guard case .invalid = world.commit(file, .revive(place: try place("a"), attributes: attributes(1))) else {
            Issue.record("a file was revived")
            return
        }
        let link: ItemID = world.fresh()
        _ = world.commit(link, world.create(try place("l"), .symlink(target: [1])))
        _ = world.commit(link, .delete(base: nil), formerTarget: "\u{1}")
        _ = try world.folder("l")
        guard case .nameTaken = world.commit(link, .revive(place: try place("l"), attributes: attributes(1))) else {
            Issue.record("the name was taken")
            return
        }
        #expect(world.commit(link, .revive(place: try place("m"), attributes: attributes(1))).item?.isDeleted == false)
        #expect(world.violation == nil)
    }

    @Test func `undelete goes to the old place, a free name, the nearest folder that is left`() throws {
        var world = CommitWorld()
        let outer = try world.folder("outer")
        let inner = try world.folder("inner", in: outer)
        let (file, base) = try world.file("a", in: inner)
        _ = world.commit(file, .delete(base: base))
        #expect(world.commit(file, .undelete).item?.place == (try place("a", inner)))
        _ = world.commit(file, .delete(base: base))
        _ = world.commit(inner, .delete(base: nil))
        _ = try world.file("a", in: outer)
        let item = try #require(world.commit(file, .undelete).item)
        #expect(item.place == (try place("a 2", outer)))
        #expect(world.commit(file, .undelete).item == item)
        #expect(world.commit(world.fresh(), .undelete) == .noSuchItem)
        #expect(world.violation == nil)
    }

    @Test func `who moves or marks what others have deleted is told that, and not that there never was such an item`()
        throws
    {
        var world = CommitWorld()
        let folder = try world.folder("f")
        let (file, base) = try world.file("a", in: folder)
        _ = world.commit(file, .delete(base: base))
        _ = world.commit(folder, .delete(base: nil))
        for item in [file, folder] {
            let deleted = try #require(world.items[item])
            #expect(deleted.isDeleted)
            #expect(world.commit(item, .move(to: try place("b"))) == .superseded(deleted))
            #expect(
                world.commit(item, .setAttributes(modified: nil, mode: 0o600, extended: nil)) == .superseded(deleted)
            )
            #expect(world.items[item] == deleted)
        }
        #expect(world.commit(world.fresh(), .move(to: try place("b"))) == .noSuchItem)
        #expect(world.violation == nil)
    }

    @Test func `create of a known item answers with it, completes it, or edits it`() throws {
        var world = CommitWorld()
        let folder = try world.folder("f")
        let again = world.commit(folder, world.create(try place("f"), .folder))
        #expect(again.item?.id == folder)
        let (file, _) = try world.file("a", "one")
        let edited = world.commit(file, world.create(try place("a"), world.fresh(), "two", edited: 300))
        #expect(edited.item?.conflicts.count == 1)
        _ = world.commit(file, .delete(base: world.current(file), conflicts: world.conflicts(file)))
        let back = world.commit(file, world.create(try place("b"), world.fresh(), "three", edited: 400))
        #expect(back.item?.isDeleted == false)
        #expect(back.item?.place == (try place("b")))
        #expect(world.violation == nil)
    }

    @Test func `attributes change one by one, and not when they are the same`() throws {
        var world = CommitWorld()
        let (file, _) = try world.file("a")
        let before = try #require(world.items[file])
        let mode = try #require(world.commit(file, .setAttributes(modified: nil, mode: 0o600, extended: nil)).item)
        #expect(mode.attributes.mode == 0o600)
        #expect(mode.attributes.modified == before.attributes.modified)
        #expect(mode.content == before.content)
        #expect(world.commit(file, .setAttributes(modified: nil, mode: 0o600, extended: nil)).item == mode)
        let extended = world.commit(file, .setAttributes(modified: nil, mode: nil, extended: [[1]: [2]]))
        #expect(extended.item?.attributes.extended == [[1]: [2]])
        #expect(world.commit(world.fresh(), .setAttributes(modified: nil, mode: 1, extended: nil)) == .noSuchItem)
    }

    @Test func `what several devices have set is never more than an item can have`() throws {
        var world = CommitWorld()
        let (file, base) = try world.file("a")
        let former = try #require(world.items[file]).attributes
        let much = [UInt8](repeating: 7, count: 40 * 1024)
        func set(_ name: UInt8) -> OperationOutcome {
            world.commit(file, .setAttributes(modified: nil, mode: nil, extended: [[name]: much]), former: former)
        }
        #expect(set(1).item?.attributes.extended.keys.sorted { $0[0] < $1[0] } == [[1]])
        guard case .invalid = set(2) else { throw WorldError(what: "it was taken") }
        #expect(world.items[file]?.attributes.extended == [[1]: much])
        // What has too much already can get less.
        world.items[file]?.attributes.extended = [[1]: much, [2]: much]
        let seen = try #require(world.items[file]).attributes
        let less = world.commit(file, .setAttributes(modified: nil, mode: nil, extended: [[1]: much]), former: seen)
        #expect(less.item?.attributes.extended == [[1]: much])
        // No content is refused for that.
        let (content, manifest) = content(world.fresh(), "three")
        let own = ItemAttributes(modified: seconds(250), mode: 0o644, extended: [[3]: much])
        for entry in manifest.entries { world.chunks.insert(entry.chunk) }
        let edited = world.commit(
            file,
            .edit(base: base, content: .file(content), attributes: own, manifest: manifest, edited: seconds(250)),
            former: former
        )
        #expect(edited.item?.content == .file(content) && edited.item?.attributes.extended == [[1]: much])
    }

    @Test func `of attributes only what their author changed is set`() throws {
        var world = CommitWorld()
        let (file, first) = try world.file("a")
        let former = try #require(world.items[file]).attributes
        func set(_ mode: UInt16?, _ extended: [[UInt8]: [UInt8]]?) -> ItemAttributes? {
            let action = ItemOperation.Action.setAttributes(modified: nil, mode: mode, extended: extended)
            return world.commit(file, action, former: former).item?.attributes
        }
        #expect(set(nil, [[1]: [1]])?.extended == [[1]: [1]])
        #expect(set(nil, [[2]: [2]])?.extended == [[1]: [1], [2]: [2]])
        #expect(set(0o600, nil)?.mode == 0o600)
        // An edit by somebody who had seen none of that.
        let outcome = world.edit(file, base: first, "two", edited: 300, former: former)
        #expect(outcome.item?.attributes.mode == 0o600)
        #expect(outcome.item?.attributes.extended == [[1]: [1], [2]: [2]])
        #expect(outcome.item?.attributes.modified == seconds(300))
        // What its author removed is gone, and what he did not know stays.
        let seen = ItemAttributes(modified: former.modified, mode: 0o600, extended: [[1]: [1]])
        let removed = world.commit(
            file,
            .setAttributes(modified: nil, mode: nil, extended: [:]),
            former: seen
        )
        #expect(removed.item?.attributes.extended == [[2]: [2]])
    }

    @Test func `the root is never changed`() throws {
        var world = CommitWorld()
        for action in [ItemOperation.Action.delete(base: nil), .undelete, .move(to: try place("x"))] {
            guard case .invalid = world.commit(.root, action) else {
                Issue.record("the root was changed")
                return
            }
        }
    }

    @Test func `operations that depend on one that failed are skipped`() throws {
        var world = CommitWorld()
        var batch = BatchDependencies()
        let folder: ItemID = world.fresh()
        let child = ItemOperation(
            id: world.fresh(),
            item: world.fresh(),
            action: world.create(try place("x", folder), .folder)
        )
        let other = ItemOperation(id: world.fresh(), item: world.fresh(), action: world.create(try place("y"), .folder))
        batch.record(folder, .nameTaken(by: world.fresh()))
        #expect(batch.isBlocked(child))
        #expect(!batch.isBlocked(other))
        batch.record(child.item, .skipped)
        #expect(batch.isBlocked(ItemOperation(id: world.fresh(), item: child.item, action: .undelete)))
    }

    @Test(arguments: [UInt64](1...20))
    func `no sequence of operations breaks what the rules promise`(seed: UInt64) throws {
        var generator = Dice(state: seed)
        var world = CommitWorld()
        var known: [ItemID] = [.root]
        for step in 0..<400 {
            let item = known.randomElement(using: &generator) ?? .root
            let parent = known.randomElement(using: &generator) ?? .root
            let place = try place("n\(Int.random(in: 0..<6, using: &generator))", parent)
            let text = "text \(Int.random(in: 0..<5, using: &generator))"
            let base = world.revisions.values.filter { $0.item == item }.map(\.version.revision).sorted()
                .randomElement(using: &generator)
            let edited = Int64.random(in: 1...1_000, using: &generator)
            switch Int.random(in: 0..<12, using: &generator) {
            case 0, 1:
                let id: ItemID = world.fresh()
                known.append(id)
                _ = world.commit(id, world.create(place, world.fresh(), text, edited: edited))
            case 2:
                let id: ItemID = world.fresh()
                known.append(id)
                _ = world.commit(id, world.create(place, .folder))
            case 3: _ = world.commit(item, world.create(place, world.fresh(), text, edited: edited))
            case 4, 5: _ = world.edit(item, base: base, text, edited: edited)
            case 6: _ = world.commit(item, .move(to: place))
            case 7: _ = world.commit(item, .delete(base: world.current(item)))
            case 8: _ = world.commit(item, .undelete)
            case 9: _ = world.commit(item, .resolve(versions: world.conflicts(item), winner: base, base: nil))
            case 10:
                if let base {
                    _ = world.commit(
                        item,
                        .restore(version: base, as: world.fresh(), base: nil, edited: seconds(edited))
                    )
                }
            default:
                let content = content(world.fresh(), text).file
                let id: ItemID = world.fresh()
                known.append(id)
                _ = world.commit(id, .announce(place: place, content: content, attributes: attributes(1)))
            }
            if let violation = world.violation {
                Issue.record("seed \(seed), step \(step): \(violation)")
                return
            }
        }
    }
}

/// SplitMix64.
struct Dice: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var word = state
        word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
        word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
        return word ^ (word >> 31)
    }
}
