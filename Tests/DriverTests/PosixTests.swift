import CLinux
import Glibc
import Replica
import Synchronization
import TestSupport
import Testing

extension DriverTests {
    /// What pjdfstest and the random histories once found to be otherwise than on the disk.
    @Suite(.serialized, Requirements.fuse)
    struct PosixTests {
        @Test
        func `a name that is too long is refused as such`() throws {
            try mounted { m in
                let longest = String(repeating: "n", count: 255)
                try Files.write("x", to: m.path(longest))
                #expect(try Files.names(in: m.root) == [longest])
                #expect(openFailure(m.path(longest + "n"), O_RDONLY | O_CREAT) == ENAMETOOLONG)
                #expect(failure(mkdir(m.path(longest + "n"), 0o755)) == ENAMETOOLONG)
                #expect(failure(unlink(m.path(longest + "n"))) == ENAMETOOLONG)
            }
        }

        @Test
        func `fifos and sockets have modes that can be set`() throws {
            try mounted { m in
                #expect(mkfifo(m.path("fifo"), 0o644) == 0)
                #expect(mknod(m.path("socket"), S_IFSOCK | 0o644, 0) == 0)
                for name in ["fifo", "socket"] {
                    #expect(chmod(m.path(name), 0o1711) == 0)
                    let status = try Files.status(m.path(name))
                    #expect(status.st_mode & 0o7777 == 0o1711)
                }
            }
        }

        @Test
        func `a change of owner ends setuid and setgid, even one to the same owner`() throws {
            try mounted { m in
                for (number, owner) in [(getuid(), getgid()), (uid_t.max, gid_t.max)].enumerated() {
                    let path = m.path("file \(number)")
                    try Files.write("x", to: path)
                    #expect(chmod(path, 0o6755) == 0)
                    #expect(chown(path, owner.0, owner.1) == 0)
                    #expect(try Files.status(path).st_mode & 0o7777 == 0o755)
                }
            }
        }

        @Test
        func `opening with O_TRUNC empties the file, for reading too`() throws {
            try mounted { m in
                try Files.write("content", to: m.path("whole"))
                try m.makeDataless("dataless", Array("content".utf8))
                for name in ["whole", "dataless"] {
                    let file = try Files.open(m.path(name), O_RDONLY | O_TRUNC)
                    close(file)
                    #expect(try Files.status(m.path(name)).st_size == 0)
                    #expect(try Files.read(m.backing(name)) == [])
                }
                #expect(m.host.state.withLock { $0.asked } == [])
            }
        }

        @Test(.enabled(if: Requirements.isRoot, "only root has attributes on symbolic links"))
        func `symbolic links have attributes of their own`() throws {
            try mounted { m in
                #expect(symlink("nowhere", m.path("link")) == 0)
                let link = Glibc.open(m.path("link"), Int32(CLINUX_O_PATH) | O_NOFOLLOW)
                defer { close(link) }
                #expect(clinux_xattr_set(link, "trusted.color", "red", 3, 0) == 0)
                #expect(clinux_xattr_set(link, "user.color", "red", 3, 0) == -EPERM)
                #expect(Look.attributeNames(link) == Outcome("trusted.color"))
                #expect(clinux_xattr_remove(link, "trusted.color") == 0)
                #expect(Look.attributeNames(link) == Outcome(""))
            }
        }

        @Test
        func `a folder's default ACL takes the place of the umask`() throws {
            try mounted { m in
                try Files.makeFolder(m.path("folder"))
                try succeed("setfacl", "-d", "-m", "u::rwx,g::rwx,o::r", m.path("folder"))
                try succeed("sh", "-c", "umask 077; cd \(m.path("folder")); : >file; mkdir inner; : >../other")
                #expect(try Files.status(m.path("folder/file")).st_mode & 0o7777 == 0o664)
                #expect(try Files.status(m.path("folder/inner")).st_mode & 0o7777 == 0o774)
                #expect(try Files.status(m.path("other")).st_mode & 0o7777 == 0o600)
            }
        }

        @Test(.enabled(if: Requirements.isRoot, "only root lets other users in"))
        func `an ACL decides on those who are let in`() throws {
            try mounted(options: ["allow_other"]) { m in
                for name in ["granted", "denied"] { try Files.write("content", to: m.path(name)) }
                #expect(chmod(m.path("granted"), 0o600) == 0)
                try succeed("setfacl", "-m", "u:nobody:r", m.path("granted"))
                try succeed("setfacl", "-m", "u:nobody:-", m.path("denied"))
                let granted = try run("runuser", "-u", "nobody", "--", "cat", m.path("granted"))
                #expect(granted.isSuccess, "\(granted)")
                #expect(try !run("runuser", "-u", "nobody", "--", "cat", m.path("denied")).isSuccess)
            }
        }

        @Test(.enabled(if: Requirements.isRoot, "only root lets other users in"))
        func `another user's new file may begin with setuid`() throws {
            try mounted(options: ["allow_other"]) { m in
                #expect(chmod(m.root, 0o777) == 0)
                let program = "umask 0; sysopen(my $f, $ARGV[0], O_WRONLY | O_CREAT | O_EXCL, 06755) or die $!"
                try succeed("runuser", "-u", "nobody", "--", "perl", "-MFcntl", "-e", program, m.path("file"))
                let status = try Files.status(m.path("file"))
                #expect(status.st_mode & 0o7777 == 0o6755)
                #expect(status.st_uid != 0)
            }
        }

        @Test(.enabled(if: !Requirements.isRoot, "root may do everything"))
        func `what the true mode forbids its owner is refused though the disk's would allow it`() throws {
            try mounted { m in
                try Files.write("x", to: m.path("file"))
                #expect(chmod(m.path("file"), 0o111) == 0)
                #expect(openFailure(m.path("file"), O_RDONLY) == EACCES)
                #expect(throws: SystemError.self) { try Files.attribute("user.color", of: m.path("file")) }
                #expect(failure(setxattr(m.path("file"), "user.color", "red", 3, 0)) == EACCES)
                try Files.makeFolder(m.path("folder"))
                try Files.makeFolder(m.path("other"))
                #expect(chmod(m.path("folder"), 0o555) == 0)
                #expect(openFailure(m.path("folder/new"), O_RDONLY | O_CREAT) == EACCES)
                // Its entry for the parent would change.
                #expect(failure(rename(m.path("folder"), m.path("other/folder"))) == EACCES)
                #expect(rename(m.path("folder"), m.path("renamed")) == 0)
                // An ACL says anew what the owner may do.
                try succeed("setfacl", "-m", "u::rw,u:nobody:r", m.path("file"))
                #expect(try Files.text(m.path("file")) == "x")
            }
        }
    }
}
