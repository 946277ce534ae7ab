import Reconciliation
import Testing
import UbiquityModel

@Suite struct PlannerTests {
    private let id = ItemID(high: 1, low: 1)
    private let attributes = ItemAttributes(modified: Timestamp(nanoseconds: 5), mode: 0o644)

    private func contentID(_ revision: UInt64) -> ContentID? {
        ContentID(bytes: [UInt8](repeating: UInt8(revision), count: 32))
    }

    private func content(_ revision: UInt64) -> FileContent {
        FileContent(
            revision: RevisionID(high: 0, low: revision),
            content: contentID(revision),
            size: 10
        )
    }

    private func place(_ name: String) throws -> Place { Place(parent: .root, name: try Name(name)) }

    private func remote(_ revision: UInt64, _ name: String = "a", isDeleted: Bool = false) throws -> RemoteItem {
        RemoteItem(
            id: id,
            place: try place(name),
            content: .file(content(revision)),
            attributes: attributes,
            position: 1,
            isDeleted: isDeleted
        )
    }

    private func local(_ content: LocalContent, _ name: String = "a") throws -> LocalItem {
        LocalItem(place: try place(name), content: content, attributes: attributes)
    }

    @Test func `an absence is a deletion only when it was recorded`() throws {
        let synced = AgreedItem(try remote(1))
        #expect(
            Planner.decide(local: nil, synced: synced, remote: try remote(1), deletionIsLogged: false)
                == .apply([.appear])
        )
        let revision = content(1).revision
        #expect(
            Planner.decide(local: nil, synced: synced, remote: try remote(1), deletionIsLogged: true)
                == .send([.delete(base: revision)])
        )
    }

    @Test(arguments: [false, true])
    func `what is neither here nor in the cloud is forgotten`(deletionIsLogged: Bool) throws {
        let synced = AgreedItem(try remote(1))
        #expect(
            Planner.decide(local: nil, synced: synced, remote: nil, deletionIsLogged: deletionIsLogged) == .forget
        )
        var deleted = try remote(1)
        deleted.isDeleted = true
        #expect(
            Planner.decide(local: nil, synced: synced, remote: deleted, deletionIsLogged: deletionIsLogged) == .forget
        )
    }

    @Test func `edit against delete keeps the edit, on either side`() throws {
        let synced = AgreedItem(try remote(1))
        #expect(
            Planner.decide(local: nil, synced: synced, remote: try remote(2), deletionIsLogged: true)
                == .apply([.appear])
        )
        let edited = try local(.read(try #require(contentID(3)), size: 10))
        #expect(
            Planner.decide(local: edited, synced: synced, remote: try remote(1, isDeleted: true))
                == .send([.edit(base: content(1).revision)])
        )
    }

    /// Moved elsewhere, and deleted there with its folder: an edit of it would come back where no folder is.
    @Test func `an edit survives where it was made, if the item was deleted elsewhere`() throws {
        let edited = try local(.read(try #require(contentID(3)), size: 10))
        var tombstone = try remote(1, isDeleted: true)
        tombstone.place.name = try Name("b")
        let decision = Planner.decide(local: edited, synced: AgreedItem(try remote(1)), remote: tombstone)
        #expect(decision == .send([.create]))
    }

    @Test func `what its user has brought here once more is not taken away by an earlier deletion`() throws {
        let tombstone = try remote(1, isDeleted: true)
        func decision(_ content: LocalContent, isKept: Bool) throws -> Decision {
            let synced = AgreedItem(try remote(1))
            return Planner.decide(local: try local(content), synced: synced, remote: tombstone, isKept: isKept)
        }
        let same = LocalContent.read(try #require(contentID(1)), size: 10)
        #expect(try decision(same, isKept: false) == .apply([.vanish]))
        #expect(try decision(same, isKept: true) == .send([.create]))
        #expect(try decision(.folder, isKept: true) == .send([.revive]))
        #expect(try decision(.unchanged, isKept: true) == .read)
    }

    @Test func `a newer revision replaces what is unchanged here`() throws {
        let decision = Planner.decide(
            local: try local(.unchanged),
            synced: AgreedItem(try remote(1)),
            remote: try remote(2)
        )
        #expect(decision == .apply([.replace]))
    }

    /// The edit may lose: the mode holds all the same, and the time is that of the content that wins.
    @Test func `what was changed beside a content is sent by itself, but for its time`() throws {
        var edited = try local(.read(try #require(contentID(3)), size: 10))
        edited.attributes.mode = 0o600
        edited.attributes.modified = Timestamp(nanoseconds: 9)
        edited.timeWasSet = true
        let decision = Planner.decide(local: edited, synced: AgreedItem(try remote(1)), remote: try remote(1))
        let edit = Send.edit(base: content(1).revision)
        #expect(decision == .send([edit, .attributes(AttributeChanges(mode: 0o600))]))
        edited.attributes.extended = [[1]: [2]]
        guard
            case .send(let sends) = Planner.decide(
                local: edited,
                synced: AgreedItem(try remote(1)),
                remote: try remote(1)
            ), case .attributes(let changes)? = sends.last
        else {
            Issue.record("\(decision)")
            return
        }
        #expect(changes.modified == nil && changes.mode == 0o600 && changes.extended == [[1]: [2]])
    }

    @Test func `the same edit on both sides is agreement`() throws {
        let same = try local(.read(try #require(contentID(2)), size: 10))
        #expect(Planner.decide(local: same, synced: AgreedItem(try remote(1)), remote: try remote(2)) == .agree)
    }

    @Test func `a placeholder of another size than its revision's is replaced`() throws {
        let revision = content(1).revision
        let placeholder = try local(.dataless(revision, size: 10))
        #expect(Planner.decide(local: placeholder, synced: AgreedItem(try remote(1)), remote: try remote(1)) == .agree)
        var announced = try remote(1)
        announced.content = .file(FileContent(revision: revision, content: nil, size: 9))
        let short = try local(.dataless(revision, size: 9))
        for synced in [AgreedItem(announced), AgreedItem(try remote(1))] {
            #expect(Planner.decide(local: short, synced: synced, remote: try remote(1)) == .apply([.replace]))
        }
    }

    @Test func `a placeholder that nobody knows gives way to the item of its name`() throws {
        let placeholder = try local(.dataless(content(1).revision, size: 10))
        #expect(Planner.decide(local: placeholder, synced: nil, remote: nil, rival: try remote(1)) == .adopt(id))
        #expect(Planner.decide(local: placeholder, synced: nil, remote: nil, rival: try remote(2)) == .adopt(id))
        #expect(Planner.decide(local: placeholder, synced: nil, remote: nil) == .unavailable)
        // What the adopted row then says.
        #expect(
            Planner.decide(local: placeholder, synced: AgreedItem(try remote(2)), remote: try remote(2))
                == .apply([.replace])
        )
    }

    @Test func `what an interrupted apply left says nothing of times and modes`() throws {
        var leftover = try local(.dataless(content(2).revision, size: 10))
        leftover.attributes = ItemAttributes(modified: Timestamp(nanoseconds: 7), mode: 0o600)
        leftover.timeWasSet = true
        let decision = Planner.decide(local: leftover, synced: AgreedItem(try remote(1)), remote: try remote(3))
        #expect(decision == .apply([.replace]))
    }

    @Test func `move against edit: both hold`() throws {
        let moved = try local(.unchanged, "b")
        let decision = Planner.decide(local: moved, synced: AgreedItem(try remote(1)), remote: try remote(2))
        #expect(decision == .send([.move(try place("b"))]))
    }

    @Test func `a different file of the same name gives way, an equal one is adopted`() throws {
        let rival = try remote(2)
        let equal = try local(.read(try #require(contentID(2)), size: 10))
        let other = try local(.read(try #require(contentID(3)), size: 10))
        #expect(Planner.decide(local: equal, synced: nil, remote: nil, rival: rival) == .adopt(rival.id))
        #expect(Planner.decide(local: other, synced: nil, remote: nil, rival: rival) == .renameAside)
    }

    /// Announced here, and meanwhile another device has sent a file of that name: to ask for the name again and again ended never.
    @Test func `of two targets of a link, or of a file in its place, one goes on beside the other`() throws {
        func item(_ target: String) throws -> RemoteItem {
            var item = try remote(1)
            item.content = .symlink(target: Array(target.utf8))
            return item
        }
        let link = LocalContent.symlink(target: Array("mine".utf8))
        let file = LocalContent.read(try #require(contentID(2)), size: 10)
        for content in [link, file] {
            let local = try local(content)
            let agreed = AgreedItem(try item("old"))
            #expect(Planner.decide(local: local, synced: agreed, remote: try item("theirs")) == .split)
            // Sent without an answer, and others have changed it since.
            #expect(Planner.decide(local: local, synced: nil, remote: try item("theirs")) == .split)
            guard case .send? = Optional(Planner.decide(local: local, synced: agreed, remote: try item("old"))) else {
                Issue.record("an edit is not sent")
                return
            }
        }
        let same = Planner.decide(local: try local(link), synced: AgreedItem(try item("old")), remote: try item("mine"))
        #expect(same == .agree)
    }

    @Test func `an announced file gives way like any other`() throws {
        let rival = try remote(2)
        var announced = try remote(1)
        announced.content = .file(FileContent(revision: content(1).revision, content: nil, size: 10))
        let equal = try local(.read(try #require(contentID(2)), size: 10))
        let other = try local(.read(try #require(contentID(3)), size: 10))
        #expect(Planner.decide(local: equal, synced: nil, remote: announced, rival: rival) == .adopt(rival.id))
        #expect(Planner.decide(local: other, synced: nil, remote: announced, rival: rival) == .renameAside)
        #expect(Planner.decide(local: other, synced: nil, remote: announced) == .send([.create]))
    }
}
