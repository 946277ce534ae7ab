extension Name {
    /// `name 2.ext`, `name 3.ext`, …: what the later of two different items with the same name is called (semantics section 4).
    ///
    /// The extension is what follows the last dot that is not the first byte; the stem is shortened, at a character boundary of
    /// UTF-8, where the result would pass 255 bytes.
    /// - Parameter number: 2 or more.
    package func numbered(_ number: Int) -> Name { inserting(" \(number)") }

    /// `NAME (DEVICE).EXT`: the name of a version that is kept beside its item.
    package func labelled(_ label: String) -> Name {
        let clean = label.utf8.filter { $0 != UInt8(ascii: "/") && $0 != 0 }.prefix(100)
        return inserting(" (\(String(decoding: clean, as: UTF8.self)))")
    }

    private func inserting(_ addition: String) -> Name {
        var stem = bytes
        var suffix = [UInt8]()
        if let dot = bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0, bytes.count - dot <= 32 {
            stem = Array(bytes[..<dot])
            suffix = Array(bytes[dot...])
        }
        let room = 255 - addition.utf8.count - suffix.count
        while stem.count > room || (stem.count == room && (stem.last ?? 0) & 0xC0 == 0x80 && bytes.count > room) {
            let removed = stem.removeLast()
            // Remove a whole UTF-8 sequence: continuation bytes go together with their leading byte.
            if removed & 0xC0 == 0x80 {
                while let last = stem.last, last & 0xC0 == 0x80 { stem.removeLast() }
                if let last = stem.last, last >= 0xC0 { stem.removeLast() }
            }
        }
        // The parts come from a valid name and hold neither "/" nor NUL; the length was just fitted to 255.
        guard let name = try? Name(bytes: stem + Array(addition.utf8) + suffix) else { return self }
        return name
    }
}
