extension MaterializationPolicy {
    /// Why a program is denied by default.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case indexer, thumbnailer, backup, scanner
    }

    /// Programs that read everything without anybody having asked for it, by the name of their executable or script.
    ///
    /// Not here: what people use to read and copy (`rsync`, `tar`, `rclone`, `grep`), and what opens documents for them as its
    /// children (file managers, the window of `recoll`).
    static let defaults: [String: Kind] = {
        var result = [String: Kind]()
        for (kind, programs) in programs {
            for program in programs { result[program] = kind }
        }
        return result
    }()

    private static let programs: [(Kind, [String])] = [
        (
            .indexer,
            [
                // GNOME, under its old and its new name; KDE; Recoll, whose filters are its children.
                "tracker-miner-fs", "tracker-miner-fs-3", "tracker-extract", "tracker-extract-3",
                "localsearch-3", "localsearch-extractor-3", "localsearch-writeback-3",
                "baloo_file", "baloo_file_extractor", "recollindex",
                // locate, of four makers. They read no content today.
                "updatedb", "updatedb.findutils", "updatedb.mlocate", "updatedb.plocate", "mlocate", "slocate",
            ]
        ),
        (
            .thumbnailer,
            [
                // evince-thumbnailer, totem-video-thumbnailer, gdk-pixbuf-thumbnailer, glycin-thumbnailer, xapp-raw-thumbnailer, …
                "*-thumbnailer", "ffmpegthumbnailer", "gnome-thumbnail-font", "mate-thumbnail-font", "stl-thumb",
                "tumblerd",
                // KDE's is a plugin of a program that does many things: kioworker …/kf6/kio/thumbnail.so.
                "thumbnail.so",
            ]
        ),
        (
            .backup,
            [
                "restic", "rustic", "resticprofile", "autorestic", "borg", "borgmatic", "vorta", "pika-backup",
                "duplicity", "duply", "deja-dup", "deja-dup-monitor", "rdiff-backup", "rsnapshot", "dirvish",
                "backintime", "backintime-qt", "timeshift", "timeshift-gtk", "timeshift-launcher",
                "kopia", "kopia-ui", "bup", "bupstash", "duplicacy", "tarsnap", "zbackup", "attic", "obnam",
                "duplicati", "duplicati-cli", "duplicati-server", "duplicati-service",
                "Duplicati.CommandLine.exe", "Duplicati.CommandLine.dll", "Duplicati.GUI.TrayIcon.exe",
                "Duplicati.GUI.TrayIcon.dll", "Duplicati.Server.exe", "Duplicati.Server.dll",
                "bacula-fd", "bareos-fd", "amandad", "burp", "urbackupclientbackend", "proxmox-backup-client",
                "dsmc", "bpbkar", "veeamagent", "luckybackup", "areca_cl",
            ]
        ),
        (
            .scanner,
            [
                "clamd", "clamscan", "clamdscan", "clamonacc", "freshclam", "wdavdaemon", "maldet", "rkhunter",
                "chkrootkit",
                "aide", "tripwire", "samhain", "ossec-syscheckd", "wazuh-syscheckd", "osqueryd",
            ]
        ),
    ]
}
