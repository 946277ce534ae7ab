import Glibc
import Replica
import TestSupport
import Testing
import UbiquityControl
import UbiquityModel

@testable import DeviceService

@Suite struct OnlyHereTests {
    @Test func `what was saved after it was agreed on, and what never was, is only here`() async throws {
        try await withScratchFolder { folder in
            let info = ContainerInfo(
                id: try #require(ContainerID("Documents")),
                key: [UInt8](repeating: 7, count: 32),
                layout: .drive,
                isCaseInsensitive: false,
                isReadOnly: false
            )
            let container = ContainerFolder(path: folder + "/replica", info: info)
            do {
                let replica = try Replica(directory: container.path)
                for name in ["agreed", "announced", "saved"] {
                    try agree(name, isAnnounced: name == "announced", replica)
                }
                try Files.makeFolder(replica.treePath + "/folder")
                try agree("folder", isAnnounced: false, replica)
            }
            var found = try OnlyHere(in: container)
            #expect((found.first, found.count) == ("announced", 1))
            let tree = container.path + "/tree"
            try Files.remove(tree + "/announced")
            try Files.write("SAVED", to: tree + "/saved")
            try Files.write("new", to: tree + "/folder/new")
            found = try OnlyHere(in: container)
            #expect((found.first, found.count) == ("folder/new", 2))
        }
    }

    @Test func `what was written in a package that was replaced is only here`() async throws {
        try await withScratchFolder { folder in
            let info = ContainerInfo(
                id: try #require(ContainerID("Documents")),
                key: [UInt8](repeating: 7, count: 32),
                layout: .drive,
                isCaseInsensitive: false,
                isReadOnly: false
            )
            let container = ContainerFolder(path: folder + "/replica", info: info)
            let staged = Staging.freshName()
            do {
                let replica = try Replica(directory: container.path)
                try Files.makeFolder(folder + "/D.rtfd")
                try Files.write("agreed", to: folder + "/D.rtfd/text")
                let old = try Files.open(folder + "/D.rtfd", O_RDONLY | O_DIRECTORY)
                defer { close(old) }
                try replica.staging.note(replaced: try PackageTree(folder: old), as: staged, from: replica.tree.rootKey)
                #expect(rename(folder + "/D.rtfd", replica.stagingPath + "/" + staged) == 0)
            }
            #expect(try OnlyHere(in: container).count == 0)
            try Files.write("written later", to: container.path + "/staging/\(staged)/text")
            let found = try OnlyHere(in: container)
            #expect((found.first, found.count) == ("text", 1))
        }
    }

    /// An item that the cloud has.
    private func agree(_ name: String, isAnnounced: Bool, _ replica: Replica) throws {
        let path = replica.treePath + "/" + name
        let isFolder = name == "folder"
        if !isFolder { try Files.write(name, to: path) }
        let state = try #require(try replica.tree.observe(in: replica.tree.rootDescriptor, Name(name)))
        let content = isAnnounced ? nil : ContentID(bytes: [UInt8](repeating: 1, count: 32))
        let row = SyncedItem(
            id: .random(),
            place: Place(parent: .root, name: try Name(name)),
            content: isFolder ? .folder : .file(FileContent(revision: .random(), content: content, size: state.size)),
            attributes: ItemAttributes(modified: state.modified, mode: state.mode),
            local: LocalEvidence(state)
        )
        try replica.database.write(synced: [row])
    }
}
