import ArgumentParser

struct UbiquityCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ubiquity",
        abstract: "A folder that is the same on all of your machines.",
        discussion: """
            `ubiquity up DIR` mounts a folder on this machine; `ubiquity invite` prints what to type on the next one.
            """,
        version: "0.1.0",
        subcommands: [DeviceServiceVerb.self],
        groupedSubcommands: [
            CommandGroup(name: "Starting", subcommands: [Up.self, Invite.self, Join.self, Down.self]),
            CommandGroup(
                name: "Items",
                subcommands: [
                    Status.self, Sync.self, Download.self, Evict.self, Pin.self, Unpin.self, Activity.self,
                    Offline.self, Policy.self, Config.self,
                ]
            ),
            CommandGroup(name: "Versions", subcommands: [Conflicts.self, Versions.self, Deleted.self]),
            CommandGroup(name: "Coordination", subcommands: [Coordinate.self, Claims.self]),
            CommandGroup(name: "Containers and mounts", subcommands: [Container.self, MountVerb.self, Unmount.self]),
            CommandGroup(
                name: "Accounts and servers",
                subcommands: [Serve.self, AccountVerb.self, Device.self, SignIn.self, SignOut.self, Identity.self]
            ),
            CommandGroup(name: "Shells", subcommands: [Completions.self]),
        ]
    )

    /// The verbs' names, hidden ones too.
    static var verbs: Set<String> {
        Set(configuration.subcommands.map { $0._commandName })
    }
}
