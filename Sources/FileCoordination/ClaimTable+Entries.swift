import UbiquityModel

extension ClaimTable {
    /// One item of a claim, or the file of an open.
    struct Part: Hashable, Sendable {
        var access: ClaimAccess
        var target: ClaimTarget
        var area: ClaimArea

        func conflicts(with other: Part) -> Bool { access.excludes(other.access) && area.overlaps(other.area) }
    }

    /// A claim that is held or waits, or an open that waits.
    struct Entry: Hashable, Sendable {
        enum Origin: Hashable, Sendable {
            case claim(PartyID, purpose: String?)
            case open(within: Set<ClaimID>)
        }

        let id: ClaimID
        let origin: Origin
        let program: String
        let pid: Int32
        var parts: [Part]
        let family: Family
        /// `nil`: it may wait for ever.
        let deadline: Duration?

        var isExplicit: Bool { party != nil }

        var party: PartyID? {
            switch origin {
            case .claim(let party, _): party
            case .open: nil
            }
        }

        var purpose: String? {
            switch origin {
            case .claim(_, let purpose): purpose
            case .open: nil
            }
        }

        mutating func move(from old: ClaimTarget, to new: ItemPath) {
            for index in parts.indices {
                parts[index].target.move(from: old, to: new)
                parts[index].area.move(from: old, to: new)
            }
        }

        /// The part of another that this one cannot be held together with.
        func conflict(with other: Entry) -> Part? {
            other.parts.first { theirs in parts.contains { $0.conflicts(with: theirs) } }
        }

        func holder(_ part: Part, isHeld: Bool) -> ClaimHolder {
            ClaimHolder(
                role: isHeld ? .holds(id) : .waits(id),
                program: program,
                pid: pid,
                access: part.access,
                target: part.target
            )
        }

        func listing(_ state: ClaimListing.State) -> ClaimListing {
            ClaimListing(
                id: id,
                state: state,
                program: program,
                pid: pid,
                purpose: purpose,
                isOpen: !isExplicit,
                parts: parts.map { ClaimListing.Part(access: $0.access, target: $0.target) }
            )
        }
    }

    /// Those whom one never waits for, as they were when it asked.
    struct Family: Hashable, Sendable {
        /// The claims that it is within, directly or by their own.
        var ancestors: Set<ClaimID>
        var parties: Set<PartyID>
        var purposes: Set<String>

        func contains(_ entry: Entry) -> Bool {
            ancestors.contains(entry.id)
                || entry.party.map(parties.contains) ?? false
                || entry.purpose.map(purposes.contains) ?? false
        }
    }

    /// The family of a request: its own party and purpose, and those of the claims that it is within.
    func family(party: PartyID?, purpose: String?, within: Set<ClaimID>) -> Family {
        var family = Family(
            ancestors: within,
            parties: party.map { [$0] } ?? [],
            purposes: purpose.map { [$0] } ?? []
        )
        // Only held claims can be within others' grants: one that waits has no program that runs in its name.
        for entry in held where within.contains(entry.id) {
            family.ancestors.formUnion(entry.family.ancestors)
            family.parties.formUnion(entry.family.parties)
            family.purposes.formUnion(entry.family.purposes)
        }
        return family
    }
}
