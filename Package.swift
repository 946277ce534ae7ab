// swift-tools-version: 6.2
// The dependency list of each target is the layering: arrows point down only. See README.md, "The map".

import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

func layer(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let asyncHTTPClient: Target.Dependency = .product(name: "AsyncHTTPClient", package: "async-http-client")
let certificates: Target.Dependency = .product(name: "X509", package: "swift-certificates")
let asn1: Target.Dependency = .product(name: "SwiftASN1", package: "swift-asn1")
let collections: Target.Dependency = .product(name: "Collections", package: "swift-collections")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let database: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let sqlite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")
let hummingbird: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore: Target.Dependency = .product(name: "HummingbirdCore", package: "hummingbird")
let hummingbirdTLS: Target.Dependency = .product(name: "HummingbirdTLS", package: "hummingbird")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let lifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let unixSignals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let nio: [Target.Dependency] = [
    .product(name: "NIOCore", package: "swift-nio"),
    .product(name: "NIOPosix", package: "swift-nio"),
    .product(name: "NIOHTTP1", package: "swift-nio"),
    .product(name: "NIOFoundationCompat", package: "swift-nio"),
    .product(name: "NIOSSL", package: "swift-nio-ssl"),
]
let protobuf: Target.Dependency = .product(name: "SwiftProtobuf", package: "swift-protobuf")
let systemPackage: Target.Dependency = .product(name: "SystemPackage", package: "swift-system")

let package = Package(
    name: "ubiquity",
    products: [
        .executable(name: "ubiquity", targets: ["UbiquityCLI"]),
        .executable(name: "ubiquity-passthrough-helper", targets: ["PassthroughHelper"]),
        .executable(name: "filesystem-bench", targets: ["FilesystemBench"]),
        .executable(name: "simulate", targets: ["Simulate"]),
        .executable(name: "cloud-fill", targets: ["CloudFill"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // System libraries and C.
        .systemLibrary(name: "CFuse3", pkgConfig: "fuse3", providers: [.apt(["libfuse3-dev"])]),
        .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
        .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .systemLibrary(name: "CQRencode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
        // Its pkg-config flags are for Windows, and refused.
        .systemLibrary(name: "CUTF8Proc", providers: [.apt(["libutf8proc-dev"])]),
        .target(name: "CDigests"),
        .target(name: "CLinux"),
        .target(name: "CSQLiteSettings", linkerSettings: [.linkedLibrary("sqlite3")]),

        // Pure: values and decisions, no I/O, clock or randomness.
        layer("UbiquityModel", ["CUTF8Proc", systemPackage]),
        layer("Chunking", ["UbiquityModel", "CDigests", "CZstd", crypto]),
        layer("Reconciliation", ["UbiquityModel"]),
        layer("FileCoordination", ["UbiquityModel"]),
        // Its asynchronous parts run where their caller does: on the engine's thread, or in a simulator's turn.
        .target(
            name: "EngineCore",
            dependencies: ["UbiquityModel", "Reconciliation", collections, logging, systemPackage],
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]
        ),

        // Both sides keep what they know in SQLite.
        layer("SQLiteRows", ["UbiquityModel", "CLinux", "CSQLiteSettings", database, sqlite]),

        // The device.
        layer("Replica", ["UbiquityModel", "Chunking", "SQLiteRows", "CLinux", database, systemPackage]),
        layer("Driver", ["UbiquityModel", "FileCoordination", "Replica", "CFuse3", "CLinux", logging, systemPackage]),
        layer(
            "SyncEngine",
            [
                "UbiquityModel", "Chunking", "EngineCore", "Reconciliation", "Replica", "Driver", "CFuse3",
                "CloudProtocol",
                "CloudClient", "CLinux", logging, systemPackage,
            ]
        ),

        // The cloud.
        .target(
            name: "CloudProtocol",
            dependencies: ["UbiquityModel", protobuf],
            exclude: ["Messages"],
            swiftSettings: settings
        ),
        layer(
            "CloudClient",
            ["UbiquityModel", "CloudProtocol", "Chunking", asyncHTTPClient, crypto, logging, protobuf] + nio
        ),
        layer("CatalogModel", ["UbiquityModel", "Reconciliation", crypto]),
        layer("MemoryCatalog", ["CatalogModel", "UbiquityModel", "Reconciliation"]),
        layer("CatalogStore", ["CatalogModel", "UbiquityModel", "Reconciliation", "SQLiteRows", database]),
        layer("ChunkStore", ["UbiquityModel", "CDigests", "CLinux", crypto, logging, systemPackage]),
        layer(
            "CloudServer",
            [
                "UbiquityModel", "CloudProtocol", "Chunking", "CatalogModel", "CatalogStore", "ChunkStore",
                "Reconciliation",
                hummingbird, hummingbirdCore, hummingbirdTLS, httpTypes, certificates, asn1, crypto, lifecycle,
                unixSignals,
                logging, protobuf,
            ] + nio
        ),

        // Whole worlds of devices, programs, a network and a server, in memory, on the engine's real code.
        .target(
            name: "Simulation",
            dependencies: [
                "UbiquityModel", "EngineCore", "Reconciliation", "CatalogModel", "MemoryCatalog", logging,
                systemPackage,
            ],
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]
        ),
        .executableTarget(name: "Simulate", dependencies: ["Simulation", argumentParser], swiftSettings: settings),

        // The processes.
        layer("UbiquityControl", ["UbiquityModel", "CLinux", systemPackage]),
        layer(
            "DeviceService",
            [
                "UbiquityModel", "UbiquityControl", "Driver", "SyncEngine", "CloudClient", "CloudProtocol",
                "FileCoordination",
                "Replica", "CLinux", "CSystemd", logging, systemPackage,
            ]
        ),
        .executableTarget(
            name: "UbiquityCLI",
            dependencies: [
                "UbiquityModel", "UbiquityControl", "DeviceService", "CloudServer", "CatalogModel", "CloudClient",
                "Reconciliation", "CLinux",
                "CQRencode", argumentParser, logging, systemPackage,
            ],
            swiftSettings: settings
        ),

        // Runs as root, so it is small and knows nothing of the rest.
        .executableTarget(name: "PassthroughHelper", dependencies: ["CLinux"], swiftSettings: settings),

        // What `Tools/bench filesystem` measures with; knows nothing of the product.
        .executableTarget(name: "FilesystemBench", dependencies: [argumentParser], swiftSettings: settings),

        // Fills a cloud with items, for measurements and tests of many.
        .executableTarget(
            name: "CloudFill",
            dependencies: ["UbiquityModel", "Chunking", "CloudClient", argumentParser, logging],
            swiftSettings: settings
        ),

        // Tests.
        .target(
            name: "TestSupport",
            dependencies: ["CLinux", "CSystemd", crypto],
            path: "Tests/TestSupport",
            swiftSettings: settings
        ),
        tests("UbiquityModelTests", ["UbiquityModel"]),
        tests("ChunkingTests", ["Chunking", "UbiquityModel", "CDigests", crypto]),
        tests("ReconciliationTests", ["Reconciliation", "UbiquityModel"]),
        tests("FileCoordinationTests", ["FileCoordination", "UbiquityModel"]),
        tests("SimulationTests", ["Simulation", "TestSupport"]),
        tests("EngineCoreTests", ["EngineCore", "Reconciliation", "UbiquityModel", logging]),
        tests("CloudProtocolTests", ["CloudProtocol", "UbiquityModel", "TestSupport", protobuf]),
        tests(
            "CloudClientTests",
            ["CloudClient", "CloudProtocol", "Chunking", "UbiquityModel", asn1, certificates, crypto, logging] + nio
        ),
        tests("ReplicaTests", ["Replica", "UbiquityModel", "Chunking", "TestSupport", "CLinux", systemPackage]),
        tests(
            "DriverTests",
            ["Driver", "Replica", "UbiquityModel", "TestSupport", "CLinux", logging, systemPackage]
        ),
        tests(
            "CatalogStoreTests",
            [
                "CatalogStore", "CatalogModel", "MemoryCatalog", "ChunkStore", "Reconciliation", "UbiquityModel",
                "TestSupport", crypto,
            ]
        ),
        tests(
            "CloudServerTests",
            [
                "CloudServer", "CloudClient", "CloudProtocol", "CatalogModel", "CatalogStore", "ChunkStore", "Chunking",
                "Reconciliation", "UbiquityModel", "TestSupport", logging,
            ]
        ),
        tests("SyncEngineTests", ["SyncEngine", "Replica", "UbiquityModel", logging]),
        tests("UbiquityControlTests", ["UbiquityControl", "UbiquityModel", "TestSupport"]),
        tests(
            "DeviceServiceTests",
            [
                "DeviceService", "Replica", "SyncEngine", "UbiquityControl", "UbiquityModel", "TestSupport", "CLinux",
                logging,
            ]
        ),
        // Spoilt input for every decoder of what comes from outside.
        tests(
            "FuzzTests",
            [
                "CatalogModel", "CatalogStore", "ChunkStore", "Chunking", "CloudClient", "CloudProtocol", "CloudServer",
                "DeviceService", "FileCoordination", "MemoryCatalog", "Reconciliation", "Replica", "UbiquityControl",
                "UbiquityModel", "TestSupport", database, protobuf,
            ]
        ),
        tests("MountTests", ["TestSupport"]),
    ]
)
