import CLinux
import Chunking
import Dispatch
import Glibc
import Replica
import SystemPackage
import Testing
import UbiquityModel

@Suite struct ContentReaderTests {
    let scratch: ScratchFolder
    let key: ContainerKey
    let bytes = (0..<1_500_000).map { UInt8(truncatingIfNeeded: ($0 &* $0) >> 7) }

    init() throws {
        scratch = try ScratchFolder()
        key = try #require(ContainerKey(bytes: [UInt8](repeating: 1, count: 32)))
    }

    @Test(arguments: [false, true], [false, true])
    func `reads a file that stays as it is`(synchronizing: Bool, beside: Bool) throws {
        let file = try scratch.write("file", bytes)
        var emitted: [UInt8] = []
        var chunks: [ChunkID] = []
        let reading = try ContentReader.read(
            file.raw,
            key: key,
            synchronizing: synchronizing,
            beside: Self.other(beside)
        ) { id, chunk in
            chunks.append(id)
            emitted.append(contentsOf: chunk)
        }
        #expect(emitted == bytes)
        #expect(reading.manifest.entries.map(\.chunk) == chunks)
        #expect(reading.manifest.size == Int64(bytes.count))
        #expect(reading.content == contentID(of: reading.manifest, key: key))
        #expect(try reading.state == BackingTree.observe(descriptor: file.raw))
    }

    enum Meddling: CaseIterable { case overwritten, appended, truncated, touched }

    private static func other(_ isUsed: Bool) -> ((@escaping @Sendable () -> Void) -> Void)? {
        guard isUsed else { return nil }
        return { job in DispatchQueue.global().async { job() } }
    }

    @Test(arguments: Meddling.allCases, [false, true])
    func `notices what happens to the file meanwhile`(meddling: Meddling, beside: Bool) throws {
        let file = try scratch.write("file", bytes)
        try setModified(file.raw, someTime)
        let meddler = try scratch.open(scratch.appending("file"))
        var isFirst = true
        do throws(ContentReadError) {
            _ = try ContentReader.read(
                file.raw,
                key: key,
                synchronizing: false,
                beside: Self.other(beside)
            ) { _, _ in
                guard isFirst else { return }
                isFirst = false
                switch meddling {
                case .overwritten:
                    _ = [UInt8](repeating: 1, count: 5).withUnsafeBytes { pwrite(meddler.raw, $0.baseAddress, 5, 0) }
                case .appended:
                    _ = [UInt8](repeating: 1, count: 5).withUnsafeBytes {
                        pwrite(meddler.raw, $0.baseAddress, 5, 1_500_000)
                    }
                case .truncated: _ = ftruncate(meddler.raw, 1_400_000)
                // The content may have been changed, and the time set back.
                case .touched: try setModified(meddler.raw, someTime)
                }
            }
            Issue.record("the change was not noticed")
        } catch {
            guard case .changed = error else { throw error }
        }
    }

    @Test func `a dataless file has nothing to send`() throws {
        let file = try scratch.write("file")
        try PlaceholderOperations.write(somePlaceholder(size: 5), to: file.raw)
        do throws(ContentReadError) {
            _ = try ContentReader.read(file.raw, key: key, synchronizing: false) { _, _ in
                Issue.record("a chunk of nothing")
            }
            Issue.record("it was read")
        } catch {
            guard case .notWhole = error else { throw error }
        }
    }

    @Test func `what the receiver throws ends the reading`() throws {
        struct Full: Error {}
        let file = try scratch.write("file", bytes)
        do throws(ContentReadError) {
            _ = try ContentReader.read(file.raw, key: key, synchronizing: false) { _, _ in throw Full() }
            Issue.record("it was read")
        } catch {
            guard case .stopped(let reason) = error, reason is Full else { throw error }
        }
    }
}
