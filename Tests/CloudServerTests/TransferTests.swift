import Chunking
import CloudClient
import CloudProtocol
import CloudServer
import Foundation
import Reconciliation
import Synchronization
import TestSupport
import Testing
import UbiquityModel

@Suite struct TransferTests {
    @Test func `upload, commit, fetch: every byte comes back`() async throws {
        try await withServer { _, client, container in
            let bytes = randomBytes(3_000_000)
            let file = try PreparedFile(bytes, container)
            #expect(file.frames.count > 5)
            let create = try file.create("big")
            let ids = file.manifest.entries.map(\.chunk)
            #expect(try await client.missing(.documents, chunks: ids) == ids)
            let early = try await client.commit(.documents, operations: [create], frames: [], clock: noClock)
            #expect(early.outcomes == [.missingChunks(ids)])
            try await client.upload(.documents, frames: Array(file.frames.prefix(4)))
            #expect(try await client.missing(.documents, chunks: ids) == Array(ids.dropFirst(4)))
            try await client.upload(.documents, frames: file.frames)
            #expect(try await client.missing(.documents, chunks: ids).isEmpty)
            let answer = try await client.commit(.documents, operations: [create], frames: [], clock: noClock)
            guard case .committed(let item)? = answer.outcomes.first else {
                Issue.record("\(answer.outcomes)")
                return
            }
            #expect(item.content == .file(file.content))
            #expect(answer.position.counter == item.position)
            // With the hash by which a server that was restored is known.
            #expect(try await !client.changes(.documents, since: answer.position, limit: 1).unknownPosition)
            let other = LogPosition(counter: item.position, hash: [UInt8](repeating: 7, count: 32))
            #expect(try await client.changes(.documents, since: other, limit: 1).unknownPosition)

            let content = try #require(file.content.content)
            #expect(try await client.manifests(.documents, contents: [content]) == [content: file.manifest])
            #expect(
                try await client.confirm(.documents, revisions: [(item.id, file.revision), (item.id, .random())]) == [
                    true, false,
                ]
            )
            let received = Received()
            try await client.fetch(.documents, chunks: ids.reversed(), examine: false) { received.add($0) }
            let key = try #require(ContainerKey(bytes: container.key))
            let plain = try received.frames.reversed().map { try $0.decoded(key: key) }
            #expect(Array(plain.joined()) == bytes)
        }
    }

    @Test func `small files travel within the commit, and their manifests with the listing`() async throws {
        try await withServer { _, client, container in
            let files = try (0..<50).map { try PreparedFile(Array("content \($0)".utf8), container) }
            let operations = try files.enumerated().map { try $1.create("file \($0)") }
            let answer = try await client.commit(
                .documents,
                operations: operations,
                frames: files.flatMap(\.frames),
                clock: noClock
            )
            #expect(answer.outcomes.count == 50)
            let page = try await client.changes(.documents, since: nil, limit: 1_000)
            #expect(page.items.count == 50)
            #expect(page.refused.isEmpty)
            for file in files {
                let content = try #require(file.content.content)
                #expect(page.manifests[content] == file.manifest)
            }
            // The very same request again changes nothing.
            let again = try await client.commit(
                .documents,
                operations: operations,
                frames: files.flatMap(\.frames),
                clock: noClock
            )
            #expect(again == answer)
        }
    }

    @Test func `what a device is told is here stays, however long its upload takes`() async throws {
        let days = Mutex<Int64>(0)
        try await withServer {
            let now = $0.now
            $0.now = { now().after(.days(days.withLock { $0 })) }
        } _: { server, client, container in
            let reader = try await server.join("reader", code: try await server.code(readOnly: true))
            let file = try PreparedFile(randomBytes(600_000), container)
            let ids = file.frames.map(\.chunk)
            try await client.upload(.documents, frames: file.frames)
            // Offered for a month, and for another one after each question.
            for day in [Int64(20), 40] {
                days.withLock { $0 = day }
                #expect(try await client.missing(.documents, chunks: [ids[0]]).isEmpty)
            }
            #expect(try await client.missing(.documents, chunks: ids) == Array(ids.dropFirst()))
            // Who may only read is told, and sends nothing.
            days.withLock { $0 = 60 }
            #expect(try await reader.missing(.documents, chunks: [ids[0]]).isEmpty)
            days.withLock { $0 = 80 }
            #expect(try await client.missing(.documents, chunks: [ids[0]]) == [ids[0]])
            await reader.shutdown()
        }
    }

    @Test func `a manifest travels as the difference to the one before it, both ways`() async throws {
        try await withServer { _, client, container in
            _ = try await client.session(nonce: client.credentials.nonce, clock: noClock)
            let (bytes, item) = (randomBytes(12_000_000), ItemID.random())
            let first = try PreparedFile(bytes, container)
            try await client.upload(.documents, frames: first.frames)
            _ = try await client.commit(
                .documents,
                operations: [try first.create("big", item: item)],
                frames: [],
                clock: noClock
            )
            let second = try PreparedFile([1] + bytes, container)
            try await client.upload(.documents, frames: second.frames)
            let old = try #require(first.content.content)
            let known = KnownManifest(content: old, manifest: first.manifest)
            let edit = second.edit(item, base: first.revision)
            #expect(WireOperation(edit, base: old, first.manifest).isBased)
            let answer = try await client.commit(
                .documents,
                operations: [edit],
                frames: [],
                clock: noClock,
                bases: [item: known]
            )
            guard case .committed(let remote)? = answer.outcomes.first else {
                Issue.record("\(answer.outcomes)")
                return
            }
            #expect(remote.content == .file(second.content))
            let new = try #require(second.content.content)
            #expect(try await client.manifests(.documents, contents: [new]) == [new: second.manifest])
            #expect(try await client.manifests(.documents, contents: [new], base: known) == [new: second.manifest])
            // What the cloud does not know is no base: the manifests travel whole.
            let strange = KnownManifest(
                content: try #require(ContentID(bytes: randomBytes(32))),
                manifest: first.manifest
            )
            #expect(try await client.manifests(.documents, contents: [new], base: strange) == [new: second.manifest])
            let third = try PreparedFile(bytes + [1], container)
            try await client.upload(.documents, frames: third.frames)
            let fallen = try await client.commit(
                .documents,
                operations: [third.edit(item, base: second.revision)],
                frames: [],
                clock: noClock,
                bases: [item: strange]
            )
            guard case .committed(let remote)? = fallen.outcomes.first else {
                Issue.record("\(fallen.outcomes)")
                return
            }
            #expect(remote.content == .file(third.content))
        }
    }

    @Test func `a difference that makes another content than it says is refused`() async throws {
        try await withServer { _, client, container in
            _ = try await client.session(nonce: client.credentials.nonce, clock: noClock)
            let (bytes, item) = (randomBytes(12_000_000), ItemID.random())
            let first = try PreparedFile(bytes, container)
            try await client.upload(.documents, frames: first.frames)
            _ = try await client.commit(
                .documents,
                operations: [try first.create("big", item: item)],
                frames: [],
                clock: noClock
            )
            let second = try PreparedFile([1] + bytes, container)
            try await client.upload(.documents, frames: second.frames)
            // Taken as of the old content, where the middle is another one.
            var wrong = first.manifest
            wrong.entries.swapAt(20, 21)
            let known = KnownManifest(content: try #require(first.content.content), manifest: wrong)
            let answer = try await client.commit(
                .documents,
                operations: [second.edit(item, base: first.revision)],
                frames: [],
                clock: noClock,
                bases: [item: known]
            )
            guard case .invalid? = answer.outcomes.first else {
                Issue.record("\(answer.outcomes)")
                return
            }
            let page = try await client.changes(.documents, since: nil, limit: 10)
            #expect(page.items.map(\.content) == [.file(first.content)])
        }
    }

    @Test func `an empty file needs no chunks`() async throws {
        try await withServer { _, client, container in
            let file = try PreparedFile([], container)
            let operations = [try file.create("e")]
            let answer = try await client.commit(
                .documents,
                operations: operations,
                frames: [],
                clock: noClock
            )
            guard case .committed? = answer.outcomes.first else {
                Issue.record("\(answer.outcomes)")
                return
            }
        }
    }

    @Test func `a chunk that is not what its name says is refused, within a commit too`() async throws {
        try await withServer { _, client, container in
            let file = try PreparedFile(randomBytes(500_000), container)
            let forged = file.forged
            let uploading = await refusal { try await client.upload(.documents, frames: forged) }
            #expect(uploading == "bad-request")
            let operations = [try file.create("a")]
            let committing = await refusal {
                _ = try await client.commit(.documents, operations: operations, frames: forged, clock: noClock)
            }
            #expect(committing == "bad-request")
            let ids = forged.map(\.chunk)
            let missing = try await client.missing(.documents, chunks: ids)
            #expect(missing.contains(ids[1]))
            let page = try await client.changes(.documents, since: nil, limit: 1)
            #expect(page.items.isEmpty)
        }
    }

    @Test func `a content that is not what its chunks make is refused, and the rest of the batch goes on`() async throws
    {
        try await withServer { _, client, container in
            var liar = try PreparedFile(randomBytes(1_000), container)
            let other = try PreparedFile(randomBytes(1_000, seed: 2), container)
            liar.content.content = other.content.content
            let operations = [try liar.create("liar"), try other.create("honest")]
            let frames = liar.frames + other.frames
            let outcomes = try await client.commit(.documents, operations: operations, frames: frames, clock: noClock)
                .outcomes
            guard case .invalid? = outcomes.first, case .committed? = outcomes.last else {
                Issue.record("\(outcomes)")
                return
            }
        }
    }

    @Test(arguments: ["a/b", "..", ".", "", "a\u{0}b", String(repeating: "x", count: 256)])
    func `a name that is none is refused by itself`(name: String) async throws {
        try await withServer(isPlain: true) { server, client, _ in
            var bad = WireOperation(try folder("placeholder"))
            bad.create.place.name = Data(name.utf8)
            var request = WireCommitRequest()
            request.format = FormatVersion.cloudProtocol
            request.operations = [bad, WireOperation(try folder("good"))]
            let answer = try await RawRequest.post(
                server.url,
                CloudRoute.path(.documents, .commit),
                headers: [CloudHeader.authorization: CloudHeader.bearer(client.credentials.token)],
                body: try request.body
            )
            #expect(answer.status == 200)
            let response = try WireCommitResponse(body: answer.body)
            #expect(!response.outcomes[0].invalid.isEmpty)
            #expect(response.outcomes[1].committed.place.name == Data("good".utf8))
        }
    }

    @Test func `bodies that are too long or no messages are refused, and the server goes on`() async throws {
        try await withServer(isPlain: true) { server, client, _ in
            let post = Poster(url: server.url, token: client.credentials.token)
            #expect(try await post(.commit, [255, 255, 255]) == "400 bad-request")
            // A frame of 4 GiB is refused before anything of it is read.
            #expect(try await post(.upload, [255, 255, 255, 255, 0]) == "400 bad-request")
            #expect(try await post(.upload, [0, 0, 0, 9, 1]) == "400 bad-request")
            let long = [UInt8](repeating: 0, count: CloudLimits.messageBytes + 1)
            #expect(try await post(.commit, long) == "413 too-large")
            #expect(try await post(.have, Array(long.prefix(CloudLimits.listBytes + 1))) == "413 too-large")
            var newer = WireCommitRequest()
            newer.format = FormatVersion.cloudProtocol + 1
            #expect(try await post(.commit, newer.body) == "426 too-new")
            var many = WireHaveRequest()
            many.chunks = [Data](repeating: Data(count: 32), count: CloudLimits.idsPerRequest + 1)
            #expect(try await post(.have, many.body) == "413 too-large")
            _ = try await client.containers()
        }
    }

    /// Posts bytes, and gives the status and the code of the refusal.
    private struct Poster {
        let url: String
        let token: [UInt8]

        func callAsFunction(_ verb: CloudRoute.Verb, _ body: [UInt8]) async throws -> String {
            let answer = try await RawRequest.post(
                url,
                CloudRoute.path(.documents, verb),
                headers: [CloudHeader.authorization: CloudHeader.bearer(token)],
                body: body
            )
            return "\(answer.status) \((try? WireFailure(body: answer.body).code) ?? "")"
        }
    }

    @Test func `chunks that are not there are said to be so`() async throws {
        try await withServer { _, client, container in
            let file = try PreparedFile(randomBytes(1_000), container)
            let ids = file.frames.map(\.chunk)
            let missing = await refusal { try await client.fetch(.documents, chunks: ids, examine: false) { _ in } }
            #expect(missing == "not-found")
            #expect(await refusal { _ = try await client.versions(.documents, item: .random()) } == "not-found")
        }
    }

    @Test func `a chunk that the disk has damaged is never taken for the right one`() async throws {
        try await withServer { server, client, container in
            let file = try PreparedFile(randomBytes(600_000), container)
            let operations = [try file.create("a")]
            _ = try await client.commit(
                .documents,
                operations: operations,
                frames: file.frames,
                clock: noClock
            )
            let packs = server.data + "/packs"
            let pack = "\(packs)/\(try #require(try Files.names(in: packs).first { $0.hasSuffix(".pack") }))"
            var bytes = try Files.read(pack)
            bytes[100] ^= 1
            try Files.write(bytes, to: pack)
            let key = try #require(ContainerKey(bytes: container.key))
            let received = Received()
            try await client.fetch(.documents, chunks: file.frames.map(\.chunk), examine: false) { received.add($0) }
            #expect(throws: ChunkError.corrupted(file.frames[0].chunk)) { try received.frames[0].decoded(key: key) }
            for frame in received.frames.dropFirst() { #expect(throws: Never.self) { try frame.decoded(key: key) } }
        }
    }

    @Test func `a chunk that the disk does not give back is damaged too, and missing from then on`() async throws {
        try await withServer { server, client, container in
            let file = try PreparedFile(randomBytes(600_000), container)
            let operations = [try file.create("a")]
            _ = try await client.commit(.documents, operations: operations, frames: file.frames, clock: noClock)
            let packs = server.data + "/packs"
            let pack = "\(packs)/\(try #require(try Files.names(in: packs).first { $0.hasSuffix(".pack") }))"
            // Where a process begins there is no memory: EIO.
            try Files.remove(pack)
            try FileManager.default.createSymbolicLink(atPath: pack, withDestinationPath: "/proc/self/mem")
            let ids = file.frames.map(\.chunk)
            #expect(try await client.missing(.documents, chunks: ids).isEmpty)
            let key = try #require(ContainerKey(bytes: container.key))
            for examine in [false, true] {
                let received = Received()
                try await client.fetch(.documents, chunks: ids, examine: examine) { received.add($0) }
                #expect(received.frames.map(\.chunk) == ids)
                for frame in received.frames {
                    #expect(throws: ChunkError.corrupted(frame.chunk)) { try frame.decoded(key: key) }
                }
            }
            #expect(try await client.missing(.documents, chunks: ids) == ids)
        }
    }

    @Test func `a deleted file is listed with its path and comes back`() async throws {
        try await withServer { _, client, container in
            let file = try PreparedFile(randomBytes(1_000), container)
            let create = try file.create("a")
            _ = try await client.commit(.documents, operations: [create], frames: file.frames, clock: noClock)
            let delete = ItemOperation(id: .random(), item: create.item, action: .delete(base: file.revision))
            _ = try await client.commit(.documents, operations: [delete], frames: [], clock: noClock)
            let deleted = try await client.deleted(.documents)
            #expect(deleted.map(\.path) == ["a"])
            #expect(deleted.map(\.device) == ["laptop"])
            let undelete = ItemOperation(id: .random(), item: create.item, action: .undelete)
            _ = try await client.commit(.documents, operations: [undelete], frames: [], clock: noClock)
            #expect(try await client.deleted(.documents).isEmpty)
            #expect(try await client.versions(.documents, item: create.item).map(\.kind) == [.current])
        }
    }

    @Test func `the quota is enforced for uploads and commits`() async throws {
        try await withServer { server, _, _ in
            let administration = try ServerAdministration(dataDirectory: server.data)
            let invitation = try await administration.addAccount(name: "bert", quota: 100_000)
            let client = try await server.join("desk", code: invitation.code)
            let container = try await client.createContainer(.documents, layout: .drive, isCaseInsensitive: false)
            let big = try PreparedFile(randomBytes(300_000), container)
            let operations = [try big.create("big"), try folder("f")]
            #expect(await refusal { try await client.upload(.documents, frames: big.frames) } == "quota")
            let answer = try await client.commit(
                .documents,
                operations: operations,
                frames: big.frames,
                clock: noClock
            )
            #expect(answer.outcomes.first == .quotaExceeded)
            guard case .committed? = answer.outcomes.last else {
                Issue.record("\(answer.outcomes)")
                return
            }
            await client.shutdown()
        }
    }
}
