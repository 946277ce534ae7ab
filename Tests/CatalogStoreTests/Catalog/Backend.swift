/// The kinds of catalogues. Each test of what a catalogue promises runs on all of them.
enum Backend: CaseIterable, Sendable {
    case sqlite
    /// The one that the simulator uses.
    case memory
}
