import Testing
import UbiquityModel

@testable import FileCoordination

/// A table with its surroundings, in a short notation: parties are numbers, paths are strings.
struct ClaimWorld {
    var table = ClaimTable()
    var now: Duration = .zero
    var writers: [ProgramWriter] = []

    var situation: ClaimSituation { ClaimSituation(now: now, writers: writers) }

    mutating func ask(
        _ party: UInt64,
        _ items: ClaimItem...,
        purpose: String? = nil,
        within: ClaimID? = nil,
        timeout: Duration? = .seconds(60)
    ) -> (claim: ClaimID, actions: [ClaimAction]) {
        table.request(
            ClaimRequest(
                party: PartyID(number: party),
                program: "coordinate",
                pid: Int32(party),
                purpose: purpose,
                within: within,
                items: items,
                timeout: timeout
            ),
            in: situation
        )
    }

    mutating func open(
        _ path: String,
        forWriting: Bool = false,
        pid: Int32 = 1000,
        within: Set<ClaimID> = [],
        mayWait: Bool = true,
        timeout: Duration = .seconds(30)
    ) throws -> (open: ClaimID, actions: [ClaimAction]) {
        table.open(
            ClaimArea(try target(path)),
            forWriting: forWriting,
            by: ClaimProgram(pid: pid, name: "cat", within: within),
            mayWait: mayWait,
            timeout: timeout,
            in: situation
        )
    }

    mutating func release(_ claim: ClaimID) -> [ClaimAction] { table.release(claim, in: situation) }

    mutating func end(_ party: UInt64) -> [ClaimAction] { table.ended(PartyID(number: party), in: situation) }

    mutating func move(_ old: String, to new: String) throws -> [ClaimAction] {
        table.moved(try target(old), to: try ItemPath(parsing: new), in: situation)
    }

    mutating func delete(_ path: String) throws -> [ClaimAction] { table.deleted(try target(path), in: situation) }

    /// A program opens a file for writing, or several do; the driver counts them.
    mutating func programWrites(_ path: String, pid: Int32 = 1000, within: Set<ClaimID> = []) throws -> [ClaimAction] {
        let program = ClaimProgram(pid: pid, name: "editor", within: within)
        writers.append(ProgramWriter(area: ClaimArea(try target(path)), program: program))
        return table.writersChanged(in: situation)
    }

    mutating func programCloses(_ path: String) throws -> [ClaimAction] {
        let closed = try target(path)
        writers.removeAll { $0.area.target == closed }
        return table.writersChanged(in: situation)
    }

    mutating func pass(_ time: Duration) -> [ClaimAction] {
        now += time
        return table.timePassed(in: situation)
    }

    func mayChange(_ paths: String..., pid: Int32 = 1000, within: Set<ClaimID> = []) throws -> Bool {
        let areas = try paths.map { ClaimArea(try target($0)) }
        return table.holders(blockingChangeOf: areas, by: ClaimProgram(pid: pid, name: "mv", within: within)).isEmpty
    }
}

func target(_ path: String, in container: ContainerID = .documents) throws -> ClaimTarget {
    ClaimTarget(container: container, path: try ItemPath(parsing: path))
}

func read(_ path: String, _ options: ClaimOption..., package: String? = nil) throws -> ClaimItem {
    ClaimItem(.read, try target(path), options: Set(options), package: try package.map { try ItemPath(parsing: $0) })
}

func write(_ path: String, _ options: ClaimOption..., package: String? = nil) throws -> ClaimItem {
    ClaimItem(.write, try target(path), options: Set(options), package: try package.map { try ItemPath(parsing: $0) })
}

extension [ClaimAction] {
    /// The claims and opens that may go on, in order.
    var granted: [ClaimID] {
        compactMap { action in
            switch action {
            case .grant(let id, _), .admit(let id): id
            case .refuse, .wakeEngine: nil
            }
        }
    }

    var refused: [ClaimID] {
        compactMap { action in
            switch action {
            case .refuse(let id, _): id
            case .grant, .admit, .wakeEngine: nil
            }
        }
    }

    /// The cycle of the only refusal.
    var cycle: [ClaimHolder]? {
        guard case .refuse(_, .deadlock(let cycle)) = first, count == 1 else { return nil }
        return cycle
    }
}
