import Logging
import TestSupport
import Testing
import UbiquityControl
import UbiquityModel

@testable import DeviceService

/// What is asked of all containers leaves none out that is still to be mounted.
@Suite struct ComingMountsTests {
    /// Of a service that has begun to mount nothing yet. The folder is not empty: what its table has cannot be mounted there.
    private func withService(_ body: (UbiquityService, ControlPath) async throws -> Void) async throws {
        try await withScratchFolder { folder in
            let home = try HomeDirectories(home: folder + "/home")
            try home.create()
            let point = folder + "/mount"
            try Files.makeFolder(point)
            try Files.write("x", to: point + "/file")
            try Files.write(try account(), to: home.accountFile)
            var table = MountTable()
            table["Documents"] = MountTable.Entry(
                container: "Documents",
                mountPoint: ControlPath(point),
                options: [],
                isImporting: false
            )
            try table.save(home)
            let account = try #require(try Account.load(home))
            try await body(
                try UbiquityService(home: home, account: account, logger: Logger(label: "test")),
                ControlPath(point)
            )
        }
    }

    /// Of a server that is not there, which has told of one container.
    private func account() throws -> String {
        let info = ContainerInfo(
            id: .documents,
            key: [UInt8](repeating: 7, count: 32),
            layout: .drive,
            isCaseInsensitive: false,
            isReadOnly: false
        )
        let container = String(decoding: try ControlCoding.encode(ContainerRecord(info)), as: UTF8.self)
        return """
            {"format": 1, "identity": "x", "serverIsEmbedded": false, "containers": [\(container)],
            "credentials": {"version": 1, "url": "http://127.0.0.1:9", "account": "anna", "device": "\(DeviceID.random())",
            "device-name": "a", "token": "00", "nonce": "00"}}
            """
    }

    private func startSync(_ service: UbiquityService, seconds: Double?) -> Task<ControlError?, Never> {
        Task {
            do throws(ControlError) {
                try await service.sync(SyncRequest(timeoutSeconds: seconds), progress: { _ in })
                return nil
            } catch { return error }
        }
    }

    @Test func `sync waits for them until its time limit`() async throws {
        try await withService { service, point in
            let error = await startSync(service, seconds: 0.05).value
            #expect(error == ControlError(.tryAgain, "\(point)", "it is just being mounted"))
        }
    }

    @Test func `and is told why they do not come`() async throws {
        try await withService { service, _ in
            let waiting = startSync(service, seconds: nil)
            await service.restoreMounts()
            #expect(await waiting.value?.why == "it is not empty")
            // From then on at once.
            #expect(await startSync(service, seconds: nil).value?.why == "it is not empty")
        }
    }

    @Test func `whoever goes away waits no longer`() async throws {
        try await withService { service, _ in
            let waiting = startSync(service, seconds: nil)
            waiting.cancel()
            #expect(await waiting.value?.status == .tryAgain)
        }
    }

    @Test func `the table is written by one at a time, and the last one counts`() async throws {
        try await withService { service, _ in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<50 { group.addTask { try await service.setOffline(true) } }
                try await group.waitForAll()
            }
            try await service.setOffline(false)
            let table = try MountTable.load(service.home)
            #expect(!table.isOffline && table.entries.count == 1)
            #expect(try Files.names(in: service.home.data).filter { $0.contains(".new-") } == [])
        }
    }
}
