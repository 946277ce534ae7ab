/// The bytes of a collection where they lie, or a copy of them: millions of ids and names are decoded from whatever holds them, and going
/// through an unspecialised collection byte by byte takes most of the time of a listing.
package func withContiguousBytes<Result>(
    _ bytes: some Collection<UInt8>,
    _ body: (UnsafeRawBufferPointer) -> Result
) -> Result {
    let result = bytes.withContiguousStorageIfAvailable { body(UnsafeRawBufferPointer($0)) }
    return result ?? Array(bytes).withUnsafeBytes(body)
}
