import Driver
import Foundation
import Glibc
import Logging
import Replica
import Synchronization
import SystemPackage
import TestSupport
import Testing
import UbiquityModel

extension DriverTests {
    @Suite(.serialized)
    struct LifeTests {
        private func refusal(on point: String, _ m: Mounted) -> MountError? {
            let mount = Mount(
                MountConfiguration(mountPoint: point, containerName: "Other"),
                replica: m.replica,
                host: TestHost(),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
            do throws(MountError) {
                try mount.start()
                mount.stop()
                return nil
            } catch {
                return error
            }
        }

        @Test
        func `a mount point must be an empty folder on which nothing is mounted`() throws {
            try mounted { m in
                #expect(refusal(on: m.root, m) == .alreadyMounted(m.root, by: "ubiquity:Test"))
                let full = m.folder + "/full"
                try Files.makeFolder(full)
                try Files.write("x", to: full + "/file")
                #expect(refusal(on: full, m) == .notEmpty(full))
                #expect(refusal(on: full + "/file", m) == .notADirectory(full + "/file"))
                #expect(refusal(on: full + "/none", m) == .notADirectory(full + "/none"))
                guard case .refused = refusal(on: m.replica.treePath, m) else {
                    throw TestFailure("a mount over its own replica was not refused")
                }
            }
        }

        @Test
        func `stopping answers who waits and leaves nothing mounted`() throws {
            let m = try Mounted()
            defer { m.end() }
            try m.makeDataless("file", Array("content".utf8))
            m.host.state.withLock { $0.delivery = .held }
            let reader = try Command(["cat", m.path("file")])
            try eventually("the read waits") { m.host.waiting > 0 }
            m.mount.stop()
            #expect(try reader.wait(.seconds(10)).code == 1)
            #expect(!Mounts.isMounted(m.root))
            #expect(m.host.state.withLock { $0.unmounted } == 1)
            // What the host completes now, nobody waits for.
            m.host.release()
        }

        @Test
        func `a busy mount is detached, and what was written is there`() throws {
            let m = try Mounted()
            defer { m.end() }
            let file = try Files.open(m.path("file"), O_RDWR | O_CREAT)
            defer { close(file) }
            #expect(ftruncate(file, 4096) == 0)
            let mapped = try #require(mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0))
            defer { munmap(mapped, 4096) }
            mapped.storeBytes(of: 9, as: UInt8.self)
            let folder = try Command(["sleep", "60"], folder: m.root)
            defer { folder.kill() }
            m.mount.stop()
            #expect(!Mounts.isMounted(m.root))
            #expect(try Files.read(m.backing("file")).first == 9)
            // With passthrough the kernel goes on writing to the disk, where the next start finds it.
            if write(file, "x", 1) == 1 { #expect(try Files.read(m.backing("file")).first == UInt8(ascii: "x")) }
        }

        @Test
        func `somebody else's unmounting is noticed`() async throws {
            let m = try Mounted()
            defer { m.end() }
            try Files.write("x", to: m.path("file"))
            try eventually("it is unmounted") {
                try run(Requirements.isRoot ? "umount" : "fusermount3", Requirements.isRoot ? "-q" : "-u", m.root)
                    .isSuccess
            }
            await m.mount.waitUntilUnmounted()
            #expect(m.host.state.withLock { $0.unmounted } == 1)
            let outcome = try m.apply(
                .publish(staged: "x", parent: m.replica.tree.rootKey, name: Mounted.name("y"), expecting: .absent)
            )
            #expect(outcome == .failure(.system(.socketNotConnected)))
        }

        /// The other process of the test after it: mounts, says so, and waits for its death.
        @Test(.enabled(if: Self.folderToHold != nil, "only for another test"))
        func `a mount is held`() throws {
            let folder = try #require(Self.folderToHold)
            let replica = try Replica(directory: folder + "/replica")
            let mount = Mount(
                MountConfiguration(mountPoint: folder + "/mnt", containerName: "Test"),
                replica: replica,
                host: TestHost(),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
            try mount.start()
            try Files.write("before the death", to: folder + "/mnt/file")
            if Self.changesWithoutEnd {
                for number in 0..<4 { startThread { Self.change(mount, replica, "\(number)") } }
                try eventually("the mount is changed") { Self.changes.load(ordering: .relaxed) > 8 }
            }
            try Files.write("", to: folder + "/ready")
            while true { pause() }
        }

        /// A file that comes and goes, as an engine makes it do so.
        private static func change(_ mount: Mount, _ replica: Replica, _ name: String) {
            let name = Mounted.name(name)
            while true {
                let done = DispatchSemaphore(value: 0)
                guard let staged = try? replica.staging.makeFile().name else { return }
                mount.apply(
                    .publish(staged: staged, parent: replica.tree.rootKey, name: name, expecting: .absent)
                ) { result in
                    guard let state = (try? result.get())?.state else {
                        done.signal()
                        return
                    }
                    mount.apply(
                        .remove(
                            parent: replica.tree.rootKey,
                            name: name,
                            expecting: LocalEvidence(state),
                            isFolder: false
                        )
                    ) { result in
                        if case .success = result { Self.changes.add(1, ordering: .relaxed) }
                        done.signal()
                    }
                }
                done.wait()
            }
        }

        private static var folderToHold: String? { ProcessInfo.processInfo.environment["UBIQUITY_DRIVER_TEST_HOLD"] }
        /// Files that came and went in this process.
        private static let changes = Atomic(0)
        private static var changesWithoutEnd: Bool {
            ProcessInfo.processInfo.environment["UBIQUITY_DRIVER_TEST_CHANGES"] != nil
        }

        /// A mount of another process, which was killed after `moment`, changing the mount or not.
        private func killed(changing: Bool, after moment: Int32 = 0, _ body: (_ folder: String) throws -> Void) throws {
            let folder = "/tmp/ubiquity-driver-\(RevisionID.random().description.prefix(12))"
            try Files.makeFolder(folder)
            try Files.makeFolder(folder + "/mnt")
            defer {
                Mounts.detach(folder + "/mnt")
                _ = try? run("rm", "-rf", folder)
            }
            var environment = ["UBIQUITY_DRIVER_TEST_HOLD": folder]
            if changing { environment["UBIQUITY_DRIVER_TEST_CHANGES"] = "1" }
            let service = try OwnBinary.command(filter: "a mount is held", environment: environment)
            defer { service.kill() }
            try eventually("it is mounted; \(service.outputSoFar)") { Files.exists(folder + "/ready") }
            poll(nil, 0, moment)
            service.kill()
            _ = try service.wait(.seconds(20))
            try body(folder)
        }

        @Test(arguments: 1...8)
        func `a service that is killed while it changes its own mount leaves nobody waiting`(round: Int32) throws {
            try killed(changing: true, after: 7 * round) { folder in
                let look = try Command(["cat", folder + "/mnt/file"]).wait(.seconds(10))
                #expect(look.errors.contains("not connected"), "\(look)")
            }
        }

        @Test
        func `the mount of a service that was killed is taken over`() throws {
            try killed(changing: false) { folder in try takeOver(folder) }
        }

        private func takeOver(_ folder: String) throws {
            #expect(Files.readFailure(folder + "/mnt/file") == ENOTCONN)
            let mount = Mount(
                MountConfiguration(mountPoint: folder + "/mnt", containerName: "Test"),
                replica: try Replica(directory: folder + "/replica"),
                host: TestHost(),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
            try mount.start()
            defer { mount.stop() }
            #expect(try Files.text(folder + "/mnt/file") == "before the death")
        }

        @Test
        func `the same folder can be mounted again and again`() throws {
            try mounted { m in
                try Files.write("kept", to: m.path("file"))
                m.mount.stop()
                for _ in 0..<5 {
                    let again = Mount(
                        MountConfiguration(mountPoint: m.root, containerName: "Test"),
                        replica: m.replica,
                        host: m.host,
                        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
                    )
                    try again.start()
                    #expect(try Files.text(m.path("file")) == "kept")
                    again.stop()
                }
            }
        }
    }

    @Suite(.serialized)
    struct PermissionTests {
        @Test
        func `a file made read-only is written by who made it, and by nobody later`() throws {
            try mounted { m in
                let file = open(m.path("object"), O_RDWR | O_CREAT | O_EXCL, 0o444)
                #expect(file >= 0)
                #expect(write(file, "git", 3) == 3)
                close(file)
                #expect(try Files.status(m.path("object")).st_mode & 0o777 == 0o444)
                #expect(try Files.text(m.path("object")) == "git")
                let refused: Int32? = Requirements.isRoot ? nil : EACCES
                #expect(openFailure(m.path("object"), O_WRONLY) == refused)
                #expect(openFailure(m.path("object"), O_RDWR) == refused)
                #expect(failure(truncate(m.path("object"), 3)) == refused)
                #expect(failure(access(m.path("object"), W_OK)) == refused)
                #expect(failure(setxattr(m.path("object"), "user.x", "1", 1, 0)) == refused)
                #expect(chmod(m.path("object"), 0o644) == 0)
                try Files.append("!", to: m.path("object"))
            }
        }

        @Test
        func `a dataless read-only file is filled and stays read-only`() throws {
            try mounted { m in
                try m.makeDataless("object", Array("content".utf8), mode: 0o400)
                let refused: Int32? = Requirements.isRoot ? nil : EACCES
                #expect(openFailure(m.path("object"), O_WRONLY) == refused)
                #expect(try Files.text(m.path("object")) == "content")
                #expect(try Files.status(m.path("object")).st_mode & 0o777 == 0o400)
            }
        }

        @Test
        func `a folder without permission to write takes and loses no names`() throws {
            try mounted { m in
                #expect(mkdir(m.path("folder"), 0o755) == 0)
                try Files.write("x", to: m.path("folder/file"))
                #expect(chmod(m.path("folder"), 0o555) == 0)
                #expect(try Files.status(m.path("folder")).st_mode & 0o777 == 0o555)
                guard !Requirements.isRoot else { return }
                #expect(openFailure(m.path("folder/new"), O_WRONLY | O_CREAT) == EACCES)
                #expect(failure(unlink(m.path("folder/file"))) == EACCES)
                #expect(failure(rename(m.path("folder/file"), m.path("moved"))) == EACCES)
                #expect(failure(mkdir(m.path("folder/inner"), 0o755)) == EACCES)
                // The engine is not bound by it.
                let folder = try m.observe("folder")
                try m.publish(m.stage(Array("theirs".utf8)), "new", parent: folder.key)
                #expect(try Files.text(m.path("folder/new")) == "theirs")
                #expect(chmod(m.path("folder"), 0o755) == 0)
            }
        }

        /// The tests once more, as an ordinary user, in a process of their own.
        @Test(.enabled(if: geteuid() == 0, "the tests run as an ordinary user already"))
        func `everything holds for an ordinary user too`() throws {
            let result = try OwnBinary.command(filter: "DriverTests", user: "nobody").wait(.seconds(500))
            if !result.isSuccess {
                let failed = (result.output + result.errors).split(separator: "\n").filter {
                    $0.contains("✘") || $0.contains("rror")
                }
                throw TestFailure("\(result.code)\n\(failed.joined(separator: "\n"))\n\(result.errors.suffix(2000))")
            }
            #expect(result.output.contains("passed") || result.errors.contains("passed"))
        }
    }
}

/// This test binary, started again.
enum OwnBinary {
    static func command(filter: String, user: String? = nil, environment more: [String: String] = [:]) throws -> Command
    {
        let binary = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        // The toolchain's runner gets the bundle as an argument; the bundle itself is a program on Linux.
        let bundle = CommandLine.arguments.dropFirst().filter { $0.hasSuffix(".xctest") }
        var environment = Command.plainEnvironment
        for (name, value) in ProcessInfo.processInfo.environment where name.hasPrefix("LD_") || name.hasPrefix("SWIFT")
        {
            environment[name] = value
        }
        environment["TMPDIR"] = "/tmp"
        environment.merge(more) { $1 }
        let prefix = user.map { ["runuser", "-u", $0, "--"] } ?? []
        return try Command(
            prefix + [binary] + bundle + ["--testing-library", "swift-testing", "--filter", filter],
            environment: environment
        )
    }
}
