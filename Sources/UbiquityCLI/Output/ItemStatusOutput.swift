import UbiquityControl

/// `status PATH…`, printed as it comes: there may be a million items.
struct ItemStatusOutput {
    private let isJSON: Bool
    private var array = JSONArrayOutput()
    private var table = TextTable("STATE", "SIZE", "PATH")

    init(json isJSON: Bool) { self.isJSON = isJSON }

    mutating func write(_ items: [ItemReport]) {
        if isJSON {
            array.write(items.lazy.map { Self.json($0) })
        } else {
            for item in items { add(item) }
            table.write()
        }
    }

    func end() {
        if isJSON { array.end() }
    }

    /// The one word for people, and Apple's values apart for programs (semantics section 2).
    private static func json(_ item: ItemReport) -> JSONValue {
        // What waits may wait for its content.
        let isHere =
            ["current", "downloaded", "uploading", "local-only"].contains(item.state)
            || item.state == "waiting" && item.localBytes >= item.size
        let isSent =
            ["current", "downloaded", "dataless", "downloading"].contains(item.state) && item.isAwaited != true
        let received = isHere ? 100 : item.state == "downloading" || item.state == "dataless" ? item.percent : 0
        let sent = isSent ? 100 : item.state == "uploading" ? item.percent : 0
        return .object([
            ("path", .path(item.path)),
            ("kind", .optional(item.kind)),
            ("state", .string(item.state)),
            ("conflicts", .count(item.conflicts)),
            ("percent", .count(item.percent)),
            ("size", .integer(item.size)),
            ("local-bytes", .integer(item.localBytes)),
            ("revision", .optional(item.revision)),
            ("pinned", .bool(item.isPinned)),
            ("error", .optional(item.error)),
            ("reason", .optional(item.reason)),
            ("ubiquitous", .bool(item.state != "local-only")),
            ("downloaded", .bool(isHere)),
            ("downloading", .bool(item.state == "downloading")),
            ("percent-downloaded", .count(received)),
            ("uploaded", .bool(isSent)),
            ("uploading", .bool(item.state == "uploading")),
            ("percent-uploaded", .count(sent)),
        ])
    }

    private mutating func add(_ item: ItemReport) {
        var state = item.state
        if ["uploading", "downloading"].contains(state) { state += " \(item.percent) %" }
        if item.isPinned { state += ", pinned" }
        if item.conflicts > 0 { state += ", conflicts: \(item.conflicts)" }
        let why = [item.reason, item.error].compactMap { $0 }.joined(separator: "; ")
        let path = ShownPath.text(item.path)
        table.add(
            state,
            item.kind == "folder" ? "" : ByteCount.text(item.size),
            why.isEmpty ? path : "\(path) (\(why))"
        )
    }
}
