internal import CDigests
internal import Crypto
internal import UbiquityModel

/// A chunk's record in a pack. It describes itself, so that an index can be made from packs alone:
///
///     bytes  0..<4   mark "UChk"
///            4       flags: 1 = compressed
///            5       kind of the check: 1; 0 in packs of format version 1
///            6..<8   zero
///            8..<16  container's number, big-endian
///           16..<48  chunk id
///           48..<52  length of the plain chunk
///           52..<56  length of the data
///           56..<64  the check over bytes 0..<56 and the data: their CRC-32C and four zeros; of kind 0 the first 8 bytes of SHA-256
///           64...    the data
///
/// The check tells a torn or damaged record from a whole one. That a chunk is what its name says, the server has verified before it is
/// stored, and each device does after it has come.
enum PackRecord {
    static let headerBytes = 64
    static let mark = Array("UChk".utf8)
    /// No record holds more data: a chunk, and some slack for compression that does not pay.
    static let longestData = Manifest.maximumChunkSize + 1024
    static let longest = headerBytes + longestData

    private enum Check {
        static let sha256: UInt8 = 0
        static let crc32c: UInt8 = 1
    }

    /// Appends what comes before the data.
    static func encodeHeader(of chunk: StoredChunk, into buffer: inout [UInt8]) {
        let start = buffer.count
        buffer.append(contentsOf: mark)
        buffer.append(contentsOf: [chunk.isCompressed ? 1 : 0, Check.crc32c, 0, 0])
        append(chunk.container, to: &buffer)
        buffer.append(contentsOf: chunk.chunk.bytes)
        append(chunk.length, to: &buffer)
        append(UInt32(chunk.data.count), to: &buffer)
        let check = buffer[start...].withUnsafeBytes { header in
            chunk.data.withUnsafeBytes { data in Self.sum(header: header, data: data) }
        }
        buffer.append(contentsOf: check)
    }

    static func length(of chunk: StoredChunk) -> UInt32 { UInt32(headerBytes + chunk.data.count) }

    /// The length of the record that begins at `offset`, if there is a whole and undamaged one.
    static func validLength(in bytes: [UInt8], at offset: Int) -> Int? {
        guard bytes.count - offset >= headerBytes, bytes[offset..<offset + 4].elementsEqual(mark) else { return nil }
        let data = bytes[offset + 52..<offset + 56].reduce(0) { $0 << 8 | Int($1) }
        guard data <= longestData, bytes.count - offset - headerBytes >= data else { return nil }
        return isValid(bytes[offset..<offset + headerBytes + data]) ? headerBytes + data : nil
    }

    /// Whether these bytes are exactly one undamaged record.
    static func isValid(_ record: ArraySlice<UInt8>) -> Bool {
        record.withUnsafeBytes { record in
            guard record.count >= headerBytes else { return false }
            return isValid(
                UnsafeRawBufferPointer(rebasing: record[..<headerBytes]),
                data: UnsafeRawBufferPointer(rebasing: record[headerBytes...])
            )
        }
    }

    /// Whether header and data are one undamaged record.
    static func isValid(_ header: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer) -> Bool {
        guard header.count == headerBytes, header.prefix(4).elementsEqual(mark) else { return false }
        let checked = UnsafeRawBufferPointer(rebasing: header[..<56])
        let check =
            switch header[5] {
            case Check.sha256: digest(header: checked, data: data)
            case Check.crc32c: sum(header: checked, data: data)
            default: [UInt8]()
            }
        return header.dropFirst(56).elementsEqual(check)
    }

    /// Whether a record that begins like this is that chunk's.
    static func names(_ header: UnsafeRawBufferPointer, _ chunk: ChunkID) -> Bool {
        header.prefix(4).elementsEqual(mark) && header.dropFirst(16).prefix(32).elementsEqual(chunk.bytes)
    }

    private static func sum(header: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer) -> [UInt8] {
        let sum = cdigests_crc32c(
            cdigests_crc32c(0, header.baseAddress, header.count),
            data.baseAddress,
            data.count
        )
        return withUnsafeBytes(of: sum.bigEndian) { Array($0) } + [0, 0, 0, 0]
    }

    private static func digest(header: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer) -> [UInt8] {
        var hash = SHA256()
        hash.update(bufferPointer: header)
        hash.update(bufferPointer: data)
        return Array(hash.finalize().prefix(8))
    }

    private static func append(_ value: some FixedWidthInteger, to buffer: inout [UInt8]) {
        withUnsafeBytes(of: value.bigEndian) { buffer.append(contentsOf: $0) }
    }
}

/// The beginning of a pack: a mark and the format version.
enum PackHeader {
    /// 2: records have a CRC-32C. Packs of version 1 are read, and not added to, since older programs take its records for damaged.
    private static let version = 2
    static let bytes: [UInt8] = header(version)
    static var count: Int { bytes.count }

    enum Answer { case valid, former, newer, damaged }

    static func examine(_ header: [UInt8]) -> Answer {
        if header == bytes { return .valid }
        guard header.count == count, header.prefix(8).elementsEqual(bytes.prefix(8)) else { return .damaged }
        if header == Self.header(1) { return .former }
        return header[8..<12].reduce(0) { $0 << 8 | Int($1) } > version ? .newer : .damaged
    }

    private static func header(_ version: Int) -> [UInt8] {
        Array("UbiqPack".utf8) + [0, 0, 0, UInt8(truncatingIfNeeded: version), 0, 0, 0, 0]
    }
}
