import Glibc
import UbiquityControl

/// What `--json` prints: keys in the order given here, absent values as `null`, so that scripts find the same keys every time.
enum JSONValue {
    case null
    case bool(Bool)
    case integer(Int64)
    case string(String)
    case array([JSONValue])
    case object([(String, JSONValue)])

    static func optional(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
    static func path(_ path: ControlPath) -> JSONValue { .string(path.description) }
    static func count(_ value: Int) -> JSONValue { .integer(Int64(value)) }

    /// One line.
    var text: String {
        var result = ""
        write(into: &result, indentation: nil)
        return result
    }

    /// For `--json`: indented.
    var prettyText: String {
        var result = ""
        write(into: &result, indentation: 0)
        return result
    }

    fileprivate func write(into result: inout String, indentation: Int?) {
        switch self {
        case .null: result += "null"
        case .bool(let value): result += value ? "true" : "false"
        case .integer(let value): result += String(value)
        case .string(let text): Self.write(text, into: &result)
        case .array(let elements):
            Self.write(elements, ("[", "]"), into: &result, indentation) { $1.write(into: &$0, indentation: $2) }
        case .object(let pairs):
            Self.write(pairs, ("{", "}"), into: &result, indentation) { result, pair, inner in
                Self.write(pair.0, into: &result)
                result += inner == nil ? ":" : ": "
                pair.1.write(into: &result, indentation: inner)
            }
        }
    }

    private static func write<Element>(
        _ elements: [Element],
        _ brackets: (String, String),
        into result: inout String,
        _ indentation: Int?,
        _ body: (inout String, Element, Int?) -> Void
    ) {
        result += brackets.0
        let inner = indentation.map { $0 + 2 }
        for (index, element) in elements.enumerated() {
            if index > 0 { result += "," }
            if let inner { result += "\n" + String(repeating: " ", count: inner) }
            body(&result, element, inner)
        }
        if let indentation, !elements.isEmpty { result += "\n" + String(repeating: " ", count: indentation) }
        result += brackets.1
    }

    private static func write(_ text: String, into result: inout String) {
        result += "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case let control where control.value < 0x20:
                let digits = String(control.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        result += "\""
    }
}

/// An array of the same form as `prettyText`, printed as its elements come.
struct JSONArrayOutput {
    private static let indentation = 2
    private var isEmpty = true

    mutating func write(_ elements: some Sequence<JSONValue>) {
        var text = ""
        for element in elements {
            text += isEmpty ? "[\n" : ",\n"
            text += String(repeating: " ", count: Self.indentation)
            element.write(into: &text, indentation: Self.indentation)
            isEmpty = false
        }
        Terminal.write(Array(text.utf8), to: STDOUT_FILENO)
    }

    /// Without it the array has no end: nobody takes a part of it for all.
    func end() { Terminal.write(isEmpty ? "[]" : "\n]") }
}
