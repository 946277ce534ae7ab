internal import Chunking
package import UbiquityModel

/// Content that is on this disk already, in another file.
extension PlaceholderFile {
    /// Fills in what is missing from a file that has this very content; `finish` makes the placeholder whole then.
    /// - Parameter key: the container's, with which the content is named.
    /// - Returns: false if the file has another content; nothing is written then.
    package func fill(from other: Int32, content: ContentID, key: [UInt8]) throws(ContentReadError) -> Bool {
        guard let key = ContainerKey(bytes: key) else { return false }
        let seen = try ContentReader.read(other, key: key, synchronizing: false) { _, _ in }
        guard seen.content == content, seen.state.size == placeholder.size else { return false }
        var offset: Int64 = 0
        let copied = try ContentReader.read(other, key: key, synchronizing: false) { _, bytes in
            let end = offset + Int64(bytes.count)
            for part in missing(in: offset..<end) {
                let range = Int(part.lowerBound - offset)..<Int(part.upperBound - offset)
                try write(UnsafeRawBufferPointer(rebasing: bytes[range]), at: part.lowerBound)
            }
            offset = end
        }
        guard copied.content == content else {
            // Written to between: what was filled in is not what it counts as here, and is forgotten with this object.
            discard()
            throw .changed
        }
        return true
    }
}

extension ContentReader {
    /// A file's content, named with a container's key of 32 bytes; `nil` if it is none.
    package static func content(of descriptor: Int32, key: [UInt8]) throws(ContentReadError) -> ContentID? {
        guard let key = ContainerKey(bytes: key) else { return nil }
        return try read(descriptor, key: key, synchronizing: false) { _, _ in }.content
    }
}
