import Logging

/// What the engine logs becomes part of the story.
///
/// `@unchecked Sendable`: see `SimExecutor`.
struct SimLog: LogHandler, @unchecked Sendable {
    var metadata = Logger.Metadata()
    var logLevel = Logger.Level.trace
    let note: (String) -> Void

    init(note: @escaping (String) -> Void) { self.note = note }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let details = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        note("\(event.message) (\(details.joined(separator: ", ")))")
    }
}
