import Glibc

/// A user without any rights, as whom a test that root runs starts a device's processes.
///
/// It is the one that every machine has (fusermount3 wants a user with a name), so that no account has to be made and removed.
package struct OrdinaryUser: Sendable {
    private static let id: UInt32 = 65534

    /// What is the user's, in the site's folder.
    let folder: String
    /// The program: a copy, since root's folders may be closed to others.
    let binary: String

    /// Runs the words that follow it as the user.
    var prefix: [String] {
        ["setpriv", "--reuid=\(Self.id)", "--regid=\(Self.id)", "--clear-groups", "--inh-caps=-all"]
    }

    package init(in site: Site) throws {
        folder = site.folder + "/nobody"
        binary = site.folder + "/ubiquity"
        guard chmod(site.folder, 0o755) == 0 else { throw SystemError("opening", site.folder, errno) }
        try succeed("cp", "--reflink=auto", TestSettings.binary, binary)
        try Files.makeFolder(folder)
        guard chown(folder, Self.id, Self.id) == 0 else { throw SystemError("giving away", folder, errno) }
    }
}
