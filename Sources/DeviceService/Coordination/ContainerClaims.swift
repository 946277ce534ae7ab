internal import FileCoordination
internal import SyncEngine
internal import UbiquityModel

/// What one container's engine asks of the broker.
struct ContainerClaims: EngineClaims {
    let broker: ClaimBroker
    let container: ContainerID

    func engineMay(read path: ItemPath) -> Bool { broker.engineMay(.read, area(path)) }
    func engineMay(write path: ItemPath) -> Bool { broker.engineMay(.write, area(path)) }

    /// A reader stands in the way of writing only: what is waited for first is the lesser right.
    func whenFree(_ path: ItemPath) async {
        await broker.whenEngineMay(engineMay(read: path) ? .write : .read, area(path))
    }

    func begin(engineWrite path: ItemPath) -> ClaimToken? { broker.beginExchange(area(path)) }
    func end(_ token: ClaimToken) { broker.endExchange(token) }

    /// What is moved or deleted takes along what lies in it.
    private func area(_ path: ItemPath) -> ClaimArea {
        ClaimArea(ClaimTarget(container: container, path: path), coversSubtree: true)
    }
}
