/// Which folders of a container are packages by their names. With extensions in it, changes that, for all devices; without, tells what this
/// device has been told.
package struct PackagesRequest: ControlRequest {
    package static var verb: String { "packages" }

    package struct Answer: Codable, Sendable, Hashable {
        /// Besides the usual extensions.
        package var added: [String]
        /// Extensions that are none, usual ones among them.
        package var removed: [String]

        package init(added: [String], removed: [String]) {
            self.added = added
            self.removed = removed
        }
    }

    package var container: String
    package var added: [String]
    package var removed: [String]

    package init(container: String, added: [String], removed: [String]) {
        self.container = container
        self.added = added
        self.removed = removed
    }
}
