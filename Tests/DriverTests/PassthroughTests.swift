import Glibc
import Replica
import TestSupport
import Testing
import UbiquityModel

@testable import Driver

extension DriverTests {
    @Suite(.serialized)
    struct PassthroughTests {
        /// What the disk could not write it tells descriptors that were open by then.
        @Test(arguments: [O_RDWR, O_WRONLY])
        func `fsync has a descriptor as old as the handle, which is no use of the file`(flags: Int32) throws {
            try mounted { m in
                let file = try Files.open(m.path("file"), flags | O_CREAT)
                #expect(write(file, "content", 7) == 7)
                let filesystem = try #require(m.mount.filesystem)
                let handle = try #require(filesystem.open.files.first)
                // The ordinary way it is the handle's own.
                #expect((handle.descriptor == nil) == handle.isDirect)
                #expect((handle.syncDescriptor != nil) == handle.isDirect)
                let before = handle.syncDescriptor?.raw
                #expect(fsync(file) == 0)
                #expect(handle.syncDescriptor?.raw == before)
                close(file)
                let state = try m.observe("file")
                try eventually("it is closed") { !m.mount.isOpen(state.key) }
                #expect(handle.syncDescriptor == nil)
                #expect(try m.evict("file", state).get().state?.isDataless == true)
            }
        }
    }
}
