import CLinux
import Foundation
import Glibc

extension Player {
    func name(_ step: Step) -> Outcome? {
        switch step {
        case .setMask(let mask):
            self.mask = mask
            return Outcome("set")
        case .enter(let name): return enter(name)
        case .leave:
            leave()
            return Outcome("left")
        case .makeFolder(let name, let mode): return Outcome(mkdir(path(name), mode))
        case .removeFolder(let name): return Outcome(rmdir(path(name)))
        case .unlink(let name): return Outcome(Glibc.unlink(path(name)))
        case .rename(let from, let to, let kind):
            return Outcome(negated: clinux_rename_at(AT_FDCWD, path(from), AT_FDCWD, path(to), kind.rawValue))
        case .hardLink(let from, let to, let follows):
            return Outcome(linkat(AT_FDCWD, path(from), AT_FDCWD, path(to), follows ? AT_SYMLINK_FOLLOW : 0))
        case .makeLink(let target, let name): return Outcome(symlink(target, path(name)))
        case .readLink(let name):
            var target = [CChar](repeating: 0, count: 5000)
            let count = readlink(path(name), &target, target.count)
            return count < 0 ? Outcome(count) : Outcome("\(count)", Data(target[..<count].map(UInt8.init(bitPattern:))))
        case .makeNode(let name, let kind, let mode): return Outcome(mknod(path(name), kind.rawValue | mode, 0))
        case .list(let name): return Look.list(path(name))
        default: return nil
        }
    }

    // MARK: Attributes

    func attribute(_ step: Step) -> Outcome? {
        switch step {
        case .look(let name):
            var status = stat()
            return lstat(path(name), &status) < 0 ? Outcome(-1) : Outcome(Look.status(status))
        case .access(let name, let wanted): return Outcome(Glibc.access(path(name), wanted))
        case .truncate(let name, let size): return Outcome(Glibc.truncate(path(name), off_t(size)))
        case .setMode(let name, let mode): return Outcome(chmod(path(name), mode))
        case .setOwner(let name, let user, let group): return Outcome(lchown(path(name), user, group))
        case .setTimes(let name, let moment, let follows):
            var times = [moment.time, moment.time]
            return Outcome(utimensat(AT_FDCWD, path(name), &times, follows ? 0 : AT_SYMLINK_NOFOLLOW))
        case .setAttribute(let name, let attribute, let content, let flags, let follows):
            return with(name, follows: follows) {
                Outcome(negated: clinux_xattr_set($0, attribute, content.bytes, content.count, flags))
            }
        case .setAccessList(let name, let isDefault, let list):
            let attribute = isDefault ? AccessList.defaultAttribute : AccessList.attribute
            return with(name, follows: true) {
                Outcome(negated: clinux_xattr_set($0, attribute, list.bytes, list.bytes.count, 0))
            }
        case .attribute(let name, let attribute, let room):
            return with(name, follows: false) { item in
                var value = [UInt8](repeating: 0, count: room)
                let count = clinux_xattr_get(item, attribute, &value, room)
                let outcome = Outcome(negated: count)
                return count < 0 || room == 0 ? outcome : Outcome(outcome.text, Data(value[..<Int(count)]))
            }
        case .attributes(let name): return with(name, follows: false) { Look.attributeNames($0) }
        case .removeAttribute(let name, let attribute):
            return with(name, follows: false) { Outcome(negated: clinux_xattr_remove($0, attribute)) }
        default: return nil
        }
    }

    private func with(_ name: String, follows: Bool, _ body: (Int32) -> Outcome) -> Outcome {
        let item = Glibc.open(path(name), Int32(CLINUX_O_PATH) | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW))
        guard item >= 0 else { return Outcome(item) }
        defer { close(item) }
        return body(item)
    }
}
