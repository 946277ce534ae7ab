import UbiquityControl

/// Requests about as many paths as a command line holds: in parts, one after the other, since the service takes no line of more than 4 MiB.
/// A path that cannot be resolved keeps none of the others from being asked about.
extension ControlClientBox {
    /// How many items are told in one answer.
    private static let itemsAtOnce = 10_000

    /// Asks about paths as they were typed.
    func send<Request: ControlRequest, Value: Codable & Sendable>(
        about words: [String],
        _ request: ([ItemArgument]) -> Request
    ) throws(ControlError) -> [PathOutcome<Value>] where Request.Answer == [PathOutcome<Value>] {
        var outcomes = [PathOutcome<Value>]()
        for part in try TypedPath.parts(words) {
            let items = part.compactMap(\.item)
            var answers = [PathOutcome<Value>]()
            if !items.isEmpty { answers = try send(request(items)) }
            outcomes += TypedPath.outcomes(of: part, answers)
        }
        return outcomes
    }

    /// The states of items, and of all that lies in them.
    /// - Parameter tell: gets some of them at a time, in order.
    func itemStatus(of words: [String], _ tell: ([ItemReport]) -> Void) throws(ControlError) -> [PathOutcome<Nothing>] {
        var outcomes = [PathOutcome<Nothing>]()
        for part in try TypedPath.parts(words) {
            outcomes += TypedPath.outcomes(of: part, try itemStatus(of: part.compactMap(\.item), tell))
        }
        return outcomes
    }

    func itemStatus(
        of items: [ItemArgument],
        _ tell: ([ItemReport]) -> Void
    ) throws(ControlError) -> [PathOutcome<Nothing>] {
        var outcomes = [PathOutcome<Nothing>]()
        var last: ControlPath?
        // Nobody reads on whose disk is full.
        while outcomes.count < items.count, Terminal.failure == 0 {
            let rest = Array(items[outcomes.count...])
            let answers = try send(ItemStatusRequest(paths: rest, after: last, limit: Self.itemsAtOnce))
            guard !answers.isEmpty else { throw ControlError("status", "the device service does not answer") }
            for answer in answers {
                tell(answer.value ?? [])
                last = answer.next
                if last != nil { break }
                if let error = answer.error {
                    outcomes.append(PathOutcome(answer.path, error))
                } else {
                    outcomes.append(PathOutcome(answer.path, Nothing()))
                }
            }
        }
        return outcomes
    }
}

/// A path as it was typed, and what it means; or why it means nothing.
private struct TypedPath {
    private static let partLimitBytes = 1 << 20

    let typed: ControlPath
    let resolved: Result<ItemArgument, ControlError>

    init(_ word: String) {
        typed = ControlPath(bytes: ArgumentBytes.decode(word))
        resolved = Result { () throws(ControlError) in try ItemArgument(word: word) }
    }

    var item: ItemArgument? { try? resolved.get() }

    /// What goes into one request each.
    static func parts(_ words: [String]) throws(ControlError) -> [[TypedPath]] {
        var parts = [[TypedPath]]()
        var room = 0
        for word in words {
            let path = TypedPath(word)
            var size = 0
            if let item = path.item { size = try ControlCoding.encode(item).count + 1 }
            if parts.isEmpty || size > room {
                parts.append([])
                room = partLimitBytes
            }
            parts[parts.count - 1].append(path)
            room -= size
        }
        return parts
    }

    /// The answers to a part, with the errors of what was not asked about, in the order of the words.
    static func outcomes<Value>(of part: [TypedPath], _ answers: [PathOutcome<Value>]) -> [PathOutcome<Value>] {
        var rest = answers[...]
        var outcomes = [PathOutcome<Value>]()
        for path in part {
            switch path.resolved {
            case .success: if let answer = rest.popFirst() { outcomes.append(answer) }
            case .failure(let error): outcomes.append(PathOutcome(path.typed, error))
            }
        }
        return outcomes
    }
}
