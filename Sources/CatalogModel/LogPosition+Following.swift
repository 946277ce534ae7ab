internal import Crypto
package import UbiquityModel

extension LogPosition {
    /// The position after a commit that wrote these entries: its hash is that of the former hash and of the entries.
    package func following(_ entries: [LogEntry]) -> LogPosition {
        guard let last = entries.last else { return self }
        var running = SHA256()
        running.update(data: hash)
        for entry in entries {
            withUnsafeBytes(of: entry.position.bigEndian) { running.update(bufferPointer: $0) }
            entry.item.withBytes { running.update(bufferPointer: $0) }
            entry.operation.withBytes { running.update(bufferPointer: $0) }
        }
        return LogPosition(counter: last.position, hash: Array(running.finalize()))
    }
}
