internal import CLinux
internal import Glibc
package import UbiquityControl
package import UbiquityModel

/// Where a container's replica lies: `containers/ID`, with `container.json` in it.
///
/// The container's key tells containers of the same name in different accounts apart: another account gets another folder, and
/// whoever signs in again finds his own.
package struct ContainerFolder: Sendable {
    private struct Record: Codable {
        var format = FormatVersion.configuration
        var container: ContainerRecord
    }

    package var path: String
    package var info: ContainerInfo

    /// Every container that has ever been mounted here, of all accounts.
    package static func all(_ home: HomeDirectories) throws(ControlError) -> [ContainerFolder] {
        var result = [ContainerFolder]()
        for name in names(in: home.containers).sorted() {
            let path = home.containers + "/" + name
            guard let info = try StateFile.read(Record.self, from: path + "/container.json")?.container.info else {
                continue
            }
            result.append(ContainerFolder(path: path, info: info))
        }
        return result
    }

    /// Those of an account.
    package static func all(_ home: HomeDirectories, of account: Account) throws(ControlError) -> [ContainerFolder] {
        let keys = Set(account.containers.map(\.key))
        return try all(home).filter { keys.contains(ContainerRecord($0.info).key) }
    }

    /// The folder of a container, made if there is none yet.
    package static func ensure(_ info: ContainerInfo, _ home: HomeDirectories) throws(ControlError) -> ContainerFolder {
        let existing = try all(home)
        if var found = existing.first(where: { $0.info.id == info.id && $0.info.key == info.key }) {
            if found.info != info {
                found.info = info
                try StateFile.write(Record(container: ContainerRecord(info)), to: found.path + "/container.json")
            }
            return found
        }
        let taken = Set(names(in: home.containers))
        var name = info.id.text
        var number = 2
        while taken.contains(name) {
            name = "\(info.id.text)~\(number)"
            number += 1
        }
        let path = home.containers + "/" + name
        try HomeDirectories.makeFolders(path, mode: 0o700)
        try StateFile.write(Record(container: ContainerRecord(info)), to: path + "/container.json")
        return ContainerFolder(path: path, info: info)
    }

    private static func names(in folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var result = [String]()
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if !name.hasPrefix(".") { result.append(name) }
        }
        return result
    }
}
