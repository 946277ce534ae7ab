import CFuse3
import CLinux
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

extension Filesystem {
    /// O_TMPFILE. The engine learns of such a file when it is given a name (`hardLink`), if it ever is.
    func createUnnamed(_ request: Request, _ parent: fuse_ino_t, _ mode: mode_t, _ flags: Int32) {
        request.attempt { () throws(Errno) in
            guard !VersionTree.owns(parent) else { throw .readOnly }
            let folder = try node(parent)
            guard folder.id != NodeTable.stagingID else { throw .notPermitted }
            try requireAccess(request, folder, W_OK | X_OK)
            let file = try makeUnnamed(request, in: descriptor(of: folder), mode, flags)
            let (node, status) = try enterUnnamed(file, in: folder)
            let admission = node.beginUse(isWriting: true, discards: true, thread: request.thread, again: {})
            guard case .admitted = admission else {
                forget(fuse_ino_t(node.id), 1)
                throw .stale
            }
            let mayMap = flags & O_ACCMODE == O_RDWR
            let handle = Handle(node: node, descriptor: file, isWritable: true, mayMap: mayMap, thread: request.thread)
            reply(request, handle, created: status)
        }
    }

    private func makeUnnamed(
        _ request: Request,
        in folder: SharedDescriptor,
        _ mode: mode_t,
        _ flags: Int32
    ) throws(Errno) -> SharedDescriptor {
        let onDisk = Self.onDisk(mode, .file)
        let wanted = Self.backingFlags(flags) | Int32(CLINUX_O_TMPFILE) | O_DIRECTORY
        let file = try makingRoom { () throws(Errno) in
            try withMask(of: request, onDisk) { mode throws(Errno) in
                SharedDescriptor(try checked(clinux_open_at(folder.raw, ".", wanted, UInt32(mode & 0o7777))))
            }
        }
        if let hidden = hiddenMode(request, mode, .file) { try hide(hidden, of: file.raw, .file) }
        try giveToCaller(request, folder, file, mode)
        return file
    }

    /// Gives the kernel a node that has no name: it keeps a descriptor instead.
    private func enterUnnamed(_ file: SharedDescriptor, in folder: Node) throws(Errno) -> (Node, stat) {
        // Any will do: the node loses it at once.
        let name = folder.state.withLock { $0.name }
        let path = SharedDescriptor(try checked(clinux_reopen(file.raw, Int32(CLINUX_O_PATH))))
        while true {
            let epoch = table.epoch
            let seen = try Observation(descriptor: path.raw)
            switch table.enter(seen.key, kind: .file, parent: folder.key, name: name, facts: seen.facts, asOf: epoch) {
            case .observeAgain, .reserved: continue
            case .node(let node):
                node.loseLink(folder.key, name, keeping: path)
                return (node, node.facts.applied(to: seen.status))
            }
        }
    }
}
