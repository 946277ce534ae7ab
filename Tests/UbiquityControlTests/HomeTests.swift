import Glibc
import TestSupport
import Testing
import UbiquityControl

@Suite struct HomeTests {
    private func withFolder(_ body: (String) throws -> Void) throws {
        var template = Array("/tmp/ubiquity-home-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        defer { _ = try? TestSupport.run("rm", "-rf", folder) }
        try body(folder)
    }

    private struct Value: Codable, Equatable {
        var format: UInt32
        var text: String
    }

    @Test func `a home keeps everything in one folder, for its owner alone`() throws {
        try withFolder { folder in
            let home = try HomeDirectories(home: folder + "/deep/device/")
            try home.create()
            #expect(home.accountFile == folder + "/deep/device/account.json")
            #expect(home.label == "device")
            #expect(try Files.status(folder + "/deep/device").st_mode & 0o777 == 0o700)
        }
    }

    @Test func `a file is replaced as a whole and readable by its owner only`() throws {
        try withFolder { folder in
            let path = folder + "/state.json"
            #expect(try StateFile.read(Value.self, from: path) == nil)
            for text in ["first, which is longer", "second"] {
                try StateFile.write(Value(format: 1, text: text), to: path)
                #expect(try StateFile.read(Value.self, from: path)?.text == text)
            }
            #expect(try Files.status(path).st_mode & 0o777 == 0o600)
            #expect(try Files.names(in: folder) == ["state.json"])
            try StateFile.remove(path)
            try StateFile.remove(path)
            #expect(try StateFile.read(Value.self, from: path) == nil)
        }
    }

    @Test(arguments: [(#"{"format": 2, "text": ""}"#, "newer"), (#"{"format": 1}"#, "damaged"), ("", "damaged")])
    func `a file that cannot be used says why`(content: String, word: String) throws {
        try withFolder { folder in
            let path = folder + "/state.json"
            try Files.write(content, to: path)
            let error = #expect(throws: ControlError.self) { try StateFile.read(Value.self, from: path) }
            #expect(error?.why.contains(word) == true, "\(String(describing: error))")
        }
    }

    @Test func `without a service there is nobody to talk to`() throws {
        try withFolder { folder in
            let home = try HomeDirectories(home: folder)
            #expect(throws: ControlError.noService()) { _ = try ControlClient(home) }
            // A socket that a killed service has left behind is no service either.
            try Files.write("", to: folder + "/socket")
            #expect(throws: ControlError.noService()) { _ = try ControlClient(home) }
        }
    }

    @Test func `paths are resolved but for their last link`() throws {
        try withFolder { folder in
            let real = try #require(realpath(folder, nil))
            defer { free(real) }
            let root = String(cString: real)
            try Files.makeFolder(folder + "/real")
            try Files.write("x", to: folder + "/real/file")
            try #require(symlink("real", folder + "/link") == 0)
            try #require(symlink("file", folder + "/real/inner") == 0)
            func resolved(_ path: String) throws -> ItemArgument {
                try ItemArgument(resolving: Array((folder + path).utf8))
            }
            #expect(try resolved("/link/file").path == ControlPath(root + "/real/file"))
            #expect(try resolved("/link/inner").path == ControlPath(root + "/real/inner"))
            #expect(try resolved("/link/inner").target == ControlPath(root + "/real/file"))
            #expect(try resolved("/link").path == ControlPath(root + "/link"))
            #expect(try resolved("/link").target == ControlPath(root + "/real"))
            #expect(try resolved("/link/.").path == ControlPath(root + "/real"))
            #expect(try resolved("/link/").path == ControlPath(root + "/link"))
            #expect(try resolved("/link/gone/away").path == ControlPath(root + "/real/gone/away"))
            #expect(throws: ControlError.self) { try resolved("/link/gone/../away/..") }
        }
    }
}
