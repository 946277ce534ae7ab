/// Why nobody has the content that a placeholder stands for, as the cloud has said. What a disk or a connection says is no such reason.
package enum ContentAbsence: Sendable {
    /// It was only announced, and deleted before it was sent.
    case withdrawn
    /// Its item has another content by now, and that one is not among its versions.
    case superseded
    /// The item is deleted or unknown, or whoever announced it is no device of the account any more.
    case gone
}
