import UbiquityModel

/// Files of packages that have further names, there or elsewhere: who changes one by another name changes the package, and nothing about that
/// name says so. It is known of packages that were looked at, and a scan looks at all.
struct LinkedParts {
    private var packages: [InodeKey: Set<InodeKey>] = [:]
    private var files: [InodeKey: [InodeKey]] = [:]

    /// - Parameter linked: all that the package has by now.
    mutating func set(_ linked: [InodeKey], of package: InodeKey) {
        // Of nearly all packages there are none.
        guard !linked.isEmpty || !files.isEmpty else { return }
        for file in files.removeValue(forKey: package) ?? [] {
            packages[file]?.remove(package)
            if packages[file]?.isEmpty ?? false { packages[file] = nil }
        }
        guard !linked.isEmpty else { return }
        files[package] = linked
        for file in linked { packages[file, default: []].insert(package) }
    }

    func packages(with file: InodeKey) -> [InodeKey] {
        guard !packages.isEmpty, let found = packages[file] else { return [] }
        return found.sorted()
    }
}
