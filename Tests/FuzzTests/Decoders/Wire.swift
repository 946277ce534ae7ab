import CatalogModel
import CloudProtocol
import FoundationEssentials
import MemoryCatalog
import Reconciliation
import SwiftProtobuf
import UbiquityModel

@testable import CloudClient

/// Messages between devices and the server.
extension FuzzTarget {
    static let wire: [FuzzTarget] = [
        page("changes") { arbitrary in
            var rest = WireChanges()
            rest.position = WirePosition(arbitrary.position())
            rest.head = WirePosition(arbitrary.position())
            rest.more = arbitrary.chance(2)
            if arbitrary.chance(2) { rest.packages = WirePackageDeclaration(arbitrary.packages()) }
            return rest
        },
        page("children") { arbitrary in WireChildrenResponse(complete: arbitrary.below(4), last: try arbitrary.name())
        },
        FuzzTarget("changes of the feed") { arbitrary in
            var rest = WireChanges()
            rest.position = WirePosition(arbitrary.position())
            rest.packages = WirePackageDeclaration(arbitrary.packages())
            return try ItemPage.body(try arbitrary.items(), rest)
        } check: { bytes in
            let page = accepted(WireError.self) { () throws(WireError) in try ChangesPage(body: bytes) }
            if let declaration = page?.packages { try check(declaration) }
            return page != nil
        },
        FuzzTarget("commit") { arbitrary in
            var request = WireCommitRequest()
            request.format = FormatVersion.cloudProtocol
            request.deviceClock = arbitrary.integer()
            for _ in 0...arbitrary.below(4) {
                let operation = try arbitrary.operation()
                let base = try arbitrary.manifest(upTo: 4)
                request.operations.append(
                    arbitrary.chance(2)
                        ? WireOperation(operation) : WireOperation(operation, base: try arbitrary.content(), base)
                )
            }
            return try request.body
        } check: { bytes in
            guard let body = accepted(WireError.self, { () throws(WireError) in try CommitBody(body: bytes) }) else {
                return false
            }
            let request = try WireCommitRequest(body: bytes)
            try promise(request.operations.count == body.entries.count, "\(body.entries.count) operations")
            var entries = [CommitRequest.Entry]()
            for (wire, entry) in zip(request.operations, body.entries) {
                let operation = try same(wire, { (wire) throws(WireError) in try ItemOperation(wire: wire) }) {
                    WireOperation($0)
                }
                switch entry {
                case .based(let based):
                    try promise(operation == nil, "\(wire) is complete without its base")
                    let base = Manifest.short
                    let whole = accepted(WireError.self) { () throws(WireError) in
                        try based.operation(base: base, limit: 100)
                    }
                    if let whole {
                        try promise(based.count <= 100, "\(based.count) chunks")
                        entries.append(.operation(whole))
                    }
                case .operation(let other): try promise(other == operation, "\(other), and not \(wire)")
                case .refused(let item, _): try promise(operation == nil && item == ItemID(bytes: wire.item), "\(wire)")
                }
                if let operation { entries.append(.operation(operation)) }
            }
            try commit(entries, deviceClock: body.deviceClock.nanoseconds)
            return !entries.isEmpty
        },
        FuzzTarget("answer to a commit") { arbitrary in
            var response = WireCommitResponse()
            for _ in 0...arbitrary.below(4) { response.outcomes.append(WireOutcome(try arbitrary.outcome())) }
            return try response.body
        } check: { bytes in
            guard
                let response = accepted(WireError.self, { () throws(WireError) in try WireCommitResponse(body: bytes) })
            else { return false }
            return try response.outcomes.allSatisfy { wire in
                try same(wire, { (wire) throws(WireError) in try OperationOutcome(wire: wire) }, { WireOutcome($0) })
                    != nil
            }
        },
        FuzzTarget("versions") { arbitrary in
            var response = WireVersionsResponse()
            for _ in 0...arbitrary.below(4) { response.versions.append(WireVersion(try arbitrary.version())) }
            return try response.body
        } check: { bytes in
            try each(
                WireVersionsResponse.self,
                bytes,
                \.versions,
                { (wire) throws(WireError) in try ItemVersion(wire: wire) }
            ) { WireVersion($0) }
        },
        FuzzTarget("recently deleted") { arbitrary in
            var list = WireDeletedList()
            for _ in 0...arbitrary.below(3) {
                list.items.append(
                    WireDeletedItem(
                        DeletedItem(
                            item: try arbitrary.item(),
                            path: arbitrary.text(),
                            deleted: arbitrary.time(),
                            device: arbitrary.text()
                        )
                    )
                )
            }
            return try list.body
        } check: { bytes in
            try each(WireDeletedList.self, bytes, \.items, { (wire) throws(WireError) in try DeletedItem(wire: wire) })
            { WireDeletedItem($0) }
        },
        FuzzTarget("manifests") { arbitrary in
            var response = WireManifestResponse()
            for _ in 0...arbitrary.below(3) {
                response.answers.append(
                    WireManifestAnswer(content: try arbitrary.content(), manifest: try arbitrary.manifest())
                )
            }
            return try response.body
        } check: { bytes in
            guard
                let response = accepted(
                    WireError.self,
                    { () throws(WireError) in try WireManifestResponse(body: bytes) }
                )
            else { return false }
            return try response.answers.allSatisfy { wire in
                guard let known = accepted(WireError.self, { () throws(WireError) in try wire.decoded() }) else {
                    return false
                }
                guard let (content, manifest) = known else { return true }
                let again = try WireManifestAnswer(content: content, manifest: manifest).decoded()
                try promise(again?.manifest == manifest && again?.content == content, "another manifest")
                return true
            }
        },
        FuzzTarget("containers") { arbitrary in
            var list = WireContainerList()
            for name in ["Documents", "a.b-c_1"] {
                guard let id = ContainerID(name) else { continue }
                let info = ContainerInfo(
                    id: id,
                    key: arbitrary.bytes(32),
                    layout: arbitrary.pick([.drive, .app]),
                    isCaseInsensitive: arbitrary.chance(2),
                    isReadOnly: arbitrary.chance(2),
                    packages: arbitrary.packages()
                )
                list.containers.append(WireContainerInfo(info))
            }
            return try list.body
        } check: { bytes in
            try each(
                WireContainerList.self,
                bytes,
                \.containers,
                { (wire) throws(WireError) in try ContainerInfo(wire: wire) }
            ) { WireContainerInfo($0) }
        },
        FuzzTarget("packages") { arbitrary in
            try WirePackageDeclaration(arbitrary.packages()).body
        } check: { bytes in
            let asked = accepted(WireError.self) { () throws(WireError) in try WirePackageDeclaration(body: bytes) }
            guard let asked else { return false }
            try check(PackageDeclaration(told: asked))
            let change = try same(asked, { (wire) throws(WireError) in try PackageDeclaration(wire: wire) }) {
                WirePackageDeclaration($0)
            }
            if let change { try check(PackageDeclaration(added: ["a"], removed: ["b"]).applying(change)) }
            return change != nil
        },
        FuzzTarget("devices") { arbitrary in
            var list = WireDeviceList()
            for _ in 0...arbitrary.below(3) {
                let device = DeviceInfo(
                    id: arbitrary.identifier(),
                    name: arbitrary.text(),
                    joined: arbitrary.time(),
                    lastSeen: arbitrary.time(),
                    isRevoked: arbitrary.chance(2),
                    isCurrent: arbitrary.chance(2)
                )
                list.devices.append(WireDevice(device))
            }
            return try list.body
        } check: { bytes in
            try each(WireDeviceList.self, bytes, \.devices, { (wire) throws(WireError) in try DeviceInfo(wire: wire) })
            { WireDevice($0) }
        },
        FuzzTarget("lists of ids") { arbitrary in
            switch arbitrary.below(5) {
            case 0: try WireHaveRequest(chunks: [try arbitrary.chunk(), try arbitrary.chunk()]).body
            case 1: try WireFetchRequest(chunks: [try arbitrary.chunk()], examine: true).body
            case 2: try WireManifestRequest(contents: [try arbitrary.content()]).body
            case 3: try WireChildrenRequest(folders: [.root, arbitrary.identifier()], after: try arbitrary.name()).body
            default: try WireConfirmation(item: arbitrary.identifier(), revision: arbitrary.identifier()).body
            }
        } check: { bytes in
            try lists(bytes)
        },
    ]

    private static func check(_ declaration: PackageDeclaration) throws {
        let extensions = declaration.added.union(declaration.removed)
        try promise(extensions.count == declaration.count, "an extension is and is not one of packages")
        try promise(declaration.count <= PackageDeclaration.limit + 2, "\(declaration.count) extensions")
        for text in extensions {
            try promise(PackageDeclaration.checked(text) == text, "\"\(text)\" is taken for an extension")
        }
    }

    /// What was decoded twice, with an encoding between, is the same.
    private static func same<Wire: Message, Value: Equatable>(
        _ wire: Wire,
        _ decode: (Wire) throws(WireError) -> Value,
        _ encode: (Value) -> Wire
    ) throws -> Value? {
        guard let value = accepted(WireError.self, { () throws(WireError) in try decode(wire) }) else { return nil }
        let again = try decode(try Wire(body: try encode(value).body))
        try promise(again == value, "\(value) became \(again)")
        return value
    }

    /// All elements of a list that stands in a message.
    private static func each<List: Message, Wire: Message, Value: Equatable>(
        _: List.Type,
        _ bytes: [UInt8],
        _ elements: KeyPath<List, [Wire]>,
        _ decode: (Wire) throws(WireError) -> Value,
        _ encode: (Value) -> Wire
    ) throws -> Bool {
        guard let list = accepted(WireError.self, { () throws(WireError) in try List(body: bytes) }) else {
            return false
        }
        return try list[keyPath: elements].allSatisfy { try same($0, decode, encode) != nil }
    }

    private static func lists(_ bytes: [UInt8]) throws -> Bool {
        var count = 0
        func note<Value>(_ body: () throws(WireError) -> Value) {
            if accepted(WireError.self, body) != nil { count += 1 }
        }
        note { () throws(WireError) in try ChunkID.list(wire: try WireHaveRequest(body: bytes).chunks, "a chunk's id") }
        note { () throws(WireError) in try ChunkID.list(wire: try WireFetchRequest(body: bytes).chunks, "a chunk's id")
        }
        note { () throws(WireError) in try ContentID.list(wire: try WireManifestRequest(body: bytes).contents, "an id")
        }
        note { () throws(WireError) in try WireHaveResponse(body: bytes).missing(of: []) }
        note { () throws(WireError) in try WireConfirmation(body: bytes).decoded() }
        note { () throws(WireError) in try WireVersionsRequest(body: bytes).decoded() }
        if let asked = accepted(
            WireError.self,
            { () throws(WireError) in try WireChildrenRequest(body: bytes).decoded() }
        ) {
            let again = try WireChildrenRequest(folders: asked.folders, after: asked.after).decoded()
            try promise(again.folders == asked.folders && again.after == asked.after, "other folders")
            count += 1
        }
        return count > 0
    }

    // MARK: Pages

    /// The quick way through a page gives what the generated code gives.
    private static func page<Rest: Message & Equatable>(
        _ name: String,
        _ rest: @escaping @Sendable (inout Arbitrary) throws -> Rest
    ) -> FuzzTarget {
        FuzzTarget("a page of \(name)") { arbitrary in
            try ItemPage.body(try arbitrary.items(), try rest(&arbitrary))
        } check: { bytes in
            guard let page = accepted(WireError.self, { () throws(WireError) in try ItemPage<Rest>(body: bytes) })
            else {
                return false
            }
            if let general = try? WireChanges(serializedBytes: bytes) {
                let wire = general.items
                let items = wire.compactMap { try? RemoteItem(wire: $0) }
                try promise(items == page.items, "items differ: \(items) and \(page.items)")
                try promise(wire.count <= page.items.count + page.refused.count, "an item is neither there nor refused")
                for (content, manifest) in page.manifests {
                    let holders = zip(wire, items).count { pair in
                        (try? pair.0.inlineManifest(for: pair.1))??.content == content
                    }
                    try promise(items.count < wire.count || holders > 0, "a manifest of nothing: \(manifest)")
                }
            }
            let body = try ItemPage.body(page.items.map { ($0, manifest(of: $0, in: page.manifests)) }, page.rest)
            let again = try ItemPage<Rest>(body: body)
            try promise(again.items == page.items && again.refused.isEmpty, "\(page.items) became \(again.items)")
            try promise(again.rest == page.rest, "\(page.rest) became \(again.rest)")
            return page.refused.isEmpty
        }
    }

    private static func manifest(of item: RemoteItem, in manifests: [ContentID: Manifest]) -> Manifest? {
        guard case .file(let file) = item.content, let content = file.content, let manifest = manifests[content],
            manifest.size == file.size
        else { return nil }
        return manifest
    }

    // MARK: What becomes of it

    /// The rules take every operation that was decoded.
    private static func commit(_ entries: [CommitRequest.Entry], deviceClock: Int64) throws {
        let scope = Scope(token: TokenHash(token: [1]), container: .documents)
        var state = CatalogState()
        let secret = SecretHash(secret: [1])
        let forever = Timestamp(nanoseconds: .max)
        try state.addAccount("me", quota: nil)
        try state.addInvitation(Invitation(secret: secret, grant: .everything, expires: forever), account: "me")
        let device = NewDevice(id: DeviceID(high: 1, low: 1), name: "device", token: scope.token, nonce: [1])
        _ = try state.join(secret, as: device, now: Timestamp(nanoseconds: 0))
        let info = ContainerInfo(
            id: .documents,
            key: [UInt8](repeating: 1, count: 32),
            layout: .drive,
            isCaseInsensitive: false,
            isReadOnly: false
        )
        _ = try state.createContainer(info, by: scope.token)
        let request = CommitRequest(
            entries: entries,
            deviceClock: Timestamp(nanoseconds: deviceClock),
            now: Timestamp(nanoseconds: 1_800_000_000_000_000_000)
        )
        let answer = try state.commit(request, scope)
        try promise(answer.outcomes.count == entries.count, "\(answer.outcomes.count) outcomes")
    }
}
