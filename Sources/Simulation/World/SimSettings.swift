/// What goes wrong in a world, besides what programs do to each other.
package enum SimFault: String, CaseIterable, Sendable {
    /// A question does not reach the server.
    case requests
    /// Its answer does not come back: what was asked for has been done.
    case answers
    /// The service is killed, and started again later.
    case kills
    /// A device has no network for a while.
    case cuts
    /// A device loses its power, and what its disk had not written with it.
    case powerLosses
    /// A device's disk is as it was some time ago, in new inodes: somebody has restored a backup of it.
    case backups
    /// A device's clock is set to another time.
    case clocks
    /// The server is as it was some time ago: somebody has restored a backup of it.
    case serverBackups
    /// A device's disk is full for a while: neither files nor the database can be written.
    case fullDisks
    /// A device's disk fails now and then, for a while.
    case failingDisks
    /// The account's quota is used up for a while.
    case quotas
    /// What a device sends arrives, but nothing reaches it for a while.
    case oneWay
    /// A device loses its power while its disk writes: some of what it was not yet asked to write is there, or all, or parts of files.
    case tornWrites
    /// A device is removed from the account, and its person lets it in again.
    case revocations
    /// A device's disk becomes a copy of another's, which goes on as well.
    case clones
    /// The server collects every chunk that nothing refers to, as if devices had slept for days over what they were told.
    case collections
    /// The service is stopped, and started again later.
    case stops
    /// While the service is stopped, somebody sets the container's folder back to what it was some time ago, and leaves the database as it is.
    case treesSetBack
    /// Programs write and change what is to be ignored, and treat these files as all others.
    case rules
    /// Programs make folders that are one document, change what lies in them, and make others of them.
    case packages
    /// The container is case-insensitive, and programs use names that differ in case only.
    case cases
    /// Programs act while a pass looks at one place after the other, and swap names in three moves.
    case races
    /// Programs give links other targets.
    case links
    /// The driver tells of a rename a moment after it has been done, having said that it is about to.
    case lateWords
    /// Programs use names that are not synced as well, and move things there and back.
    case noSync
    /// Programs give files further names, each of which is an item of its own.
    case hardLinks
    /// Programs use the names of the files that SQLite has beside a database as well.
    case databases
    /// Programs claim items for a while: the engine leaves these alone, and is told when they are free.
    case claims
    /// Folders populate themselves: what the cloud has in one gets an inode when a program asks for its name.
    case population
    /// All changes are made on one device at a time: first on the first one, and, when these have arrived everywhere, on the second. Nothing but
    /// what programs do there may come of it, as on an ordinary disk: nobody gets a second name, and nothing comes back or conflicts.
    case alone

    /// Says that it has happened.
    package var counter: SimCounter {
        switch self {
        case .requests: .requestLost
        case .answers: .answerLost
        case .kills: .kills
        case .cuts: .networkCuts
        case .powerLosses: .powerLosses
        case .backups: .backupsRestored
        case .clocks: .clockJumps
        case .serverBackups: .serverRestored
        case .fullDisks: .disksFull
        case .failingDisks: .diskFailures
        case .quotas: .quotasUsedUp
        case .oneWay: .networkDeaf
        case .tornWrites: .writesTorn
        case .revocations: .devicesRevoked
        case .clones: .disksCloned
        case .collections: .chunksCollected
        case .stops: .cleanStops
        case .treesSetBack: .treesSetBack
        case .rules: .rules
        case .packages: .packages
        case .cases: .twinsRefused
        case .races: .races
        case .links: .relinks
        case .lateWords: .lateWords
        case .noSync: .leftToItself
        case .hardLinks: .hardLinks
        case .databases: .databases
        case .claims: .claims
        case .population: .populations
        case .alone: .alone
        }
    }
}

/// What a world is like, where its seed does not decide that.
package struct SimSettings: Sendable {
    /// 2 to 5.
    package var devices: Int?
    /// How often programs act.
    package var steps: Int?
    /// Those that happen, all of them in every world; `nil`: what the seed decides.
    package var faults: Set<SimFault>?
    /// These happen in every world, besides what `faults` or the seed says.
    package var moreFaults: Set<SimFault>
    /// Wrong is also what is counted as `SimCounter.onlySaved`.
    package var isStrict: Bool

    /// Whether it is sure to happen.
    func has(_ fault: SimFault) -> Bool { moreFaults.contains(fault) || faults?.contains(fault) ?? false }

    var isCaseInsensitive: Bool { has(.cases) }

    package init(
        devices: Int? = nil,
        steps: Int? = nil,
        faults: Set<SimFault>? = nil,
        moreFaults: Set<SimFault> = [],
        isStrict: Bool = false
    ) {
        self.devices = devices
        self.steps = steps
        self.faults = faults
        self.moreFaults = moreFaults
        self.isStrict = isStrict
    }

    /// What is so slow, or makes so much of another world, that it is in few: each in one of ten, as the seed decides.
    private static let seldom: [SimFault] = [.packages, .cases, .serverBackups]

    /// What one device does with these by itself is not yet in all as on an ordinary disk, or not meant to be.
    private static let neverAlone: Set<SimFault> = [
        .packages, .serverBackups, .noSync, .databases,
    ]

    /// The same, and of what is seldom what the seed draws. Whoever plays a seed again with other settings names that himself.
    package func drawing(by seed: UInt64) -> SimSettings {
        guard faults == nil else { return self }
        var settings = self
        var random = SimRandom(seed: seed ^ 0x5E1D_03A1)
        for fault in Self.seldom where random.happens(10) { settings.moreFaults.insert(fault) }
        if random.happens(30) { settings.moreFaults.insert(.races) }
        if random.happens(20) { settings.moreFaults.insert(.links) }
        if random.happens(20) { settings.moreFaults.insert(.lateWords) }
        if random.happens(20) { settings.moreFaults.insert(.noSync) }
        if random.happens(20) { settings.moreFaults.insert(.hardLinks) }
        if random.happens(10) { settings.moreFaults.insert(.databases) }
        if random.happens(20) { settings.moreFaults.insert(.claims) }
        if random.happens(20) { settings.moreFaults.insert(.population) }
        // A package of which only a part is here, and that the restored server does not know, waits for its content.
        if settings.moreFaults.isSuperset(of: [.packages, .serverBackups]) {
            settings.moreFaults.subtract(Set([.packages, .serverBackups]).subtracting(moreFaults))
        }
        if random.happens(5) {
            settings.moreFaults.insert(.alone)
            settings.moreFaults.subtract(Self.neverAlone.subtracting(moreFaults))
        }
        return settings
    }
}
