/// Finds where the records of a pack end: what a crash left after the last whole record is cut off when the pack is opened.
///
/// A damaged record in the middle (a bad disk) is stepped over: what follows it was promised to devices and is never cut off.
enum PackScan {
    /// Reads so much at once; a record is always shorter.
    private static let window = 4 * 1024 * 1024

    /// The end of the last undamaged record in bytes; the end of the header if there is none.
    static func end(of file: OpenFile) throws(ChunkStoreError) -> UInt64 {
        let size = try file.size()
        var end = UInt64(PackHeader.count)
        var position = end
        while position < size {
            let bytes = try file.read(window, at: position)
            guard !bytes.isEmpty else { break }
            let isLast = position + UInt64(bytes.count) >= size
            var offset = 0
            while offset < bytes.count {
                if let length = PackRecord.validLength(in: bytes, at: offset) {
                    offset += length
                    end = position + UInt64(offset)
                } else if !isLast, bytes.count - offset < PackRecord.longest, offset > 0 {
                    // It may go on beyond the window: look again from its beginning.
                    break
                } else {
                    offset = nextMark(in: bytes, after: offset) ?? bytes.count
                }
            }
            position += UInt64(offset)
        }
        return end
    }

    private static func nextMark(in bytes: [UInt8], after offset: Int) -> Int? {
        var index = offset + 1
        while index < bytes.count {
            guard let start = bytes[index...].firstIndex(of: PackRecord.mark[0]) else { return nil }
            // A mark may be split by the end of the window: that too is worth another look.
            if PackRecord.mark.starts(with: bytes[start...].prefix(4)) { return start }
            index = start + 1
        }
        return nil
    }
}
