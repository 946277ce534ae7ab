import Simulation

extension Story {
    /// What one device does alone, and what was found with that: as for `all`.
    static let alone: [Story] = [
        // One device alone, the network sound: as on an ordinary disk. Two files changed names, and one was removed before the other one was
        // sent: that it had been removed was forgotten with what it had been, and it came back.
        Story(seed: 67, steps: [0, 2, 4, 11, 19], faults: [.alone]),
        Story(seed: 308, steps: [0, 4, 5, 6, 15, 17, 18, 19, 20, 23, 24, 26, 27], faults: [.alone]),
        // What had just taken an item's name was removed before that was written down.
        Story(seed: 996, steps: [1, 2, 7, 8, 10, 11, 12, 13, 14, 18, 19, 20, 22], faults: [.alone]),
        // A folder was removed after one in it had been moved out: where that had still to be done, the folder was kept.
        Story(
            seed: 107,
            steps: [2, 3, 5, 9, 11, 12, 13, 14, 15, 18, 20, 21, 22, 23, 26, 27, 29, 31, 32, 33, 34, 36],
            faults: [.alone]
        ),
        // What took a name that another one had left got a second one, since the other's leaving was not told yet.
        Story(seed: 2_175, steps: [1, 2, 4, 5, 12, 15, 17, 18, 20], faults: [.alone]),
        Story(seed: 2_806, steps: [7, 8, 9, 11, 16, 17, 19, 22, 23, 25, 28], faults: [.alone]),
        // A file went on as another item, and where it had gone was forgotten before its own one had been told of.
        Story(seed: 3_916, steps: [0, 2, 6, 10, 11, 12, 13, 14], faults: [.alone]),
        // A folder was removed with what had changed its name in it, and came back.
        Story(seed: 2_614, steps: [0, 2, 3, 6, 7, 9, 10, 11, 13, 14, 18, 19, 20, 21, 23, 25], faults: [.alone]),
        // A folder was removed right after something had been done in it: what of that was not told yet kept the folder, which came back.
        Story(
            seed: 1_100_000_198_406,
            steps: [1, 2, 4, 5, 6, 9, 11, 12, 13, 15, 16, 17, 18, 20, 21, 22, 23, 24],
            moreFaults: [.alone]
        ),
        Story(seed: 1_100_000_213_441, steps: [9, 10, 12, 14, 15, 17, 18, 19, 20, 25, 26], moreFaults: [.alone]),
        // A folder's attributes were sent when others had just deleted it: the server was taken for a restored one, and what
        // they had removed came back.
        Story(
            seed: 3_418,
            steps: [1, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 28, 31, 39, 40, 41],
            faults: [.alone, .links]
        ),
        // A folder was moved into another one that had just been taken out of it, and that was not told yet: a circle, and the
        // move was undone.
        Story(
            seed: 1_925,
            steps: [2, 6, 10, 12, 16, 17, 18, 19, 24, 25, 29],
            faults: [.alone, .population, .claims, .lateWords]
        ),
        // Who had left its name for another one got that not, and went back: it was taken for moved by others, to the name between.
        Story(seed: 9_339, steps: [0, 1, 7, 9, 10, 11, 12, 13, 14, 15], faults: [.alone]),
        // What had been taken out of a folder got the folder's name, which was deleted: neither could go first, and the folder was revived.
        Story(
            seed: 3_218,
            steps: [6, 7, 8, 10, 15, 16, 17, 18, 21],
            faults: [.alone, .population, .claims, .lateWords]
        ),
        // A folder and a file were exchanged twice: the second move made a circle for a moment.
        Story(seed: 1_300_000_045_679, steps: [40, 42, 48, 51, 52, 55, 56], moreFaults: [.alone, .population]),
        // A dataless file took another one's name while a pass looked: that the program had put it there was forgotten with its
        // former item.
        Story(seed: 5_423, steps: [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12], faults: [.alone, .races]),
        // The same by a further name: the dataless file was given its new name's content.
        Story(seed: 5_274, steps: [1, 5, 8, 10, 11, 12], faults: [.alone, .hardLinks]),
        // A file was moved out of a folder and saved anew there, and still written to, when the folder was removed: the folder came back.
        Story(
            seed: 1_300_000_144_912,
            steps: [0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 16, 17, 26],
            moreFaults: [.alone, .lateWords]
        ),
        // One of a file's names was removed, or another file was put there, before that name's item had been written down: it came back.
        Story(seed: 201, steps: [0, 1, 6, 11, 15, 16], faults: [.alone, .hardLinks]),
        Story(seed: 1_362, steps: [17, 21, 38, 40, 41, 45], faults: [.alone, .hardLinks]),
        Story(seed: 1_654, steps: [4, 5, 12, 13, 19, 20, 21, 22, 23], faults: [.alone, .hardLinks]),
        // The same while a claim kept the place from being looked at for long.
        Story(
            seed: 7_316,
            steps: [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14, 17, 19, 20, 21, 28],
            faults: [.alone, .links, .races, .hardLinks, .population, .lateWords, .claims]
        ),
        // A dataless file was exchanged with a link, whose item had just been replaced: it got a second name.
        Story(
            seed: 14_796,
            steps: [0, 1, 2, 4, 5, 6, 7, 8, 9, 11, 12, 13],
            faults: [.alone, .links, .races, .hardLinks, .population, .lateWords, .claims]
        ),
        // A name was used anew in another case, in a container without, before its former owner's move was told: it got a second name.
        Story(seed: 1_914, steps: [0, 1, 5, 8, 9, 10], faults: [.alone, .cases]),
        Story(seed: 2_796, steps: [6, 9, 10, 13, 14, 15, 20, 23], faults: [.alone, .cases]),
        // Whoever had made room waited for its name, and who was there waited for that one to leave.
        Story(
            seed: 99_000_098,
            steps: [3, 5, 6, 9, 10, 13, 14, 18, 20, 24, 26, 27, 31, 33],
            moreFaults: [.hardLinks, .races]
        ),
        Story(
            seed: 1_300_000_179_226,
            steps: [9, 10, 11, 12, 14, 18, 20, 24, 26, 27, 28, 29, 31, 45, 46, 47],
            moreFaults: [.lateWords]
        ),
        Story(seed: 1_500_000_024_637, steps: [0, 1, 2, 5, 7, 8, 9, 10, 14, 16, 17, 73, 74, 75, 76]),
        Story(
            seed: 1_500_000_039_572,
            steps: [4, 5, 7, 17, 24, 25, 28, 30, 32, 33, 35, 38, 39, 40, 42, 43, 45, 56, 57, 58, 60, 61, 62, 63],
            moreFaults: [.claims]
        ),
        // A clone's file was linked to the name that others had given it, and saved anew: it was in two places for ever.
        Story(
            seed: 1_400_000_020_147,
            steps: [0, 1, 2, 4, 6, 7, 8, 11, 12, 13, 16, 25, 38, 39],
            moreFaults: [.hardLinks, .lateWords]
        ),
        // A file that a program had asked for was tagged in the same tick, and the service was killed while there was no connection.
        Story(
            seed: 1_300_000_004_099,
            steps: [0, 3, 4, 6, 8, 9, 12, 14, 15, 18, 19, 23, 27],
            moreFaults: [.population]
        ),
        // A link was moved into a folder that was in the cloud only, under the name that the link still had here: it never came.
        Story(
            seed: 1_300_000_152_357,
            steps: [0, 4, 5, 7, 8, 9, 10, 11, 12, 13, 18, 22, 23, 24, 26, 28, 38, 39, 40, 49],
            moreFaults: [.claims, .links, .population, .races]
        ),
        // An announced item got its content, where a file that a restored server does not know had its name: nobody was shown it.
        Story(
            seed: 1_300_000_189_640,
            steps: [
                0, 1, 6, 7, 8, 9, 10, 12, 14, 15, 17, 18, 19, 20, 23, 24, 25, 29, 30, 31, 34, 35, 36, 37, 38, 39, 40,
                41, 42,
            ],
            moreFaults: [.lateWords, .population, .serverBackups]
        ),
        // A folder that populates itself became a package on a failing disk, and came back beside it: what was in it was shown
        // in the package.
        Story(
            seed: 1_400_000_091_228,
            steps: [
                0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 30, 31, 32, 35, 36,
                37, 43, 45, 46, 52, 54, 57, 60, 62, 64, 65,
            ],
            moreFaults: [.databases, .packages, .population, .races]
        ),
        // A folder was moved between two looks of the engine at where it is, which then took it for gone: nothing in it was looked at any
        // more.
        Story(
            seed: 1_800_000_026_284,
            steps: [2, 5, 7, 8, 12, 14, 15, 20, 22, 29, 30, 46, 50],
            moreFaults: [.lateWords, .packages, .races]
        ),
        // One of a file's names was moved and saved anew, and another of its names was taken for where the item had gone: it was in two
        // places for ever.
        Story(
            seed: 1_800_000_046_746,
            steps: [
                0, 1, 3, 5, 6, 7, 10, 11, 13, 14, 15, 18, 20, 22, 23, 26, 27, 28, 29, 30, 31, 41, 42, 43, 46, 48, 49,
                50, 52, 53, 54, 57, 58, 59, 64,
            ],
            moreFaults: [.hardLinks, .lateWords, .links, .races]
        ),
        // A folder was renewed: what was in it was moved into a new one, which got its name. None of the three could be told first.
        Story(
            seed: 1_600_000_154_226,
            steps: [
                3, 5, 7, 8, 10, 12, 16, 18, 21, 22, 23, 24, 25, 26, 27, 28, 33, 35, 39, 40, 44, 45, 46, 50, 51, 52, 53,
                55, 56, 57, 58, 59, 60, 61, 62, 66, 68, 73, 74, 75, 79, 80, 81, 83, 84, 86, 88, 89, 90, 91, 92, 93, 94,
            ],
            moreFaults: [.claims, .packages]
        ),
        // Two files were exchanged and back: the server put one back under a name that nobody had given it, and that came here.
        Story(
            seed: 33_278,
            steps: [0, 1, 2, 4, 5, 6, 7],
            faults: [.alone, .links, .races, .hardLinks, .population, .lateWords, .claims, .cases]
        ),
        // A name was used anew while a claim kept its former owner from being looked at.
        Story(
            seed: 43_552,
            steps: [
                0, 1, 2, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 21, 22, 23, 24, 26, 28, 29, 31, 33, 35, 36, 37,
                38, 39, 42, 43, 44, 45, 46, 49, 50,
            ],
            faults: [.alone, .links, .races, .hardLinks, .population, .lateWords, .claims, .cases]
        ),
        // What stayed in the cloud, since its folder had left it, went on waiting when the folder was there again.
        Story(
            seed: 1_600_000_142_716,
            steps: [
                0, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 17, 18, 19, 20, 21, 23, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36,
                37, 38, 39, 40, 42, 43, 44, 45, 48, 49, 50, 54, 55, 57, 58, 59, 60, 61,
            ],
            moreFaults: [.noSync, .population, .races]
        ),
        // A new folder took a name between in a commit that did not free its own, and its author never came back.
        Story(
            seed: 90_189_649_114_471,
            steps: [
                0, 5, 9, 10, 15, 16, 18, 20, 22, 30, 31, 32, 35, 39, 40, 42, 46, 47, 50, 55, 56, 64, 66, 71, 72, 81, 85,
            ],
            moreFaults: [.packages]
        ),
        // A folder was moved while nobody knew it by its inode, and became another item, whose answer was lost: what lay in it was told nobody.
        Story(
            seed: 1_400_000_157_362,
            steps: [
                0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 19, 20, 21, 22, 23, 24, 27, 28, 29, 30, 31, 32, 35, 36, 37,
                38, 39, 41, 42, 44, 47, 48, 52, 53, 54, 55, 56, 57, 58, 59, 60,
            ]
        ),
        // Others gave an item a name that a file has here by a further name of its own: nobody made room.
        Story(
            seed: 1_600_000_554_909,
            steps: [2, 3, 18, 19, 20, 21, 23],
            moreFaults: [.databases, .hardLinks, .lateWords, .population]
        ),
        Story(
            seed: 1_210_000_001_445,
            steps: [1, 2, 3, 11, 19, 20, 23, 36, 38, 40, 41, 43, 44],
            moreFaults: [.databases, .hardLinks, .links]
        ),
        // A program asked for what was about to appear, in a folder that populates itself, and removed that before it appeared.
        Story(
            seed: 2_000_000_077_193,
            steps: [0, 2, 5, 9, 16, 17, 21, 23, 24, 33, 34, 35],
            moreFaults: [.population, .races]
        ),
        // Others went on in a folder that had become a package here: what they put there came into the package.
        Story(
            seed: 2_000_000_142_478,
            steps: [
                0, 1, 2, 3, 4, 5, 6, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 26, 28, 29, 38, 39, 40, 45, 46,
                47, 58, 63,
            ],
            moreFaults: [.packages, .population]
        ),
        // A link took another one's name, and a file's after that, before the first answer came: it was taken for what this device had deleted.
        Story(
            seed: 3_000_000_050_568,
            steps: [2, 9, 10, 15, 25, 32, 36, 39, 44, 46],
            moreFaults: [.claims, .databases, .links]
        ),
        // A page of the feed ended between a folder's deletion and where a file in it had gone: for that file the folder was brought back.
        Story(
            seed: 30_000_000_024_245,
            steps: [1, 2, 3, 4, 5, 7, 10, 11, 12, 17, 18, 19, 21, 23, 26],
            moreFaults: [.alone, .claims, .lateWords, .races]
        ),
        // What was announced was created under a name between, and the last name was refused: back where it had been announced, it was taken for
        // what had made room, and its rename was undone.
        Story(
            seed: 400_000_000_019_614,
            steps: [
                0, 1, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 25, 26, 27, 29, 31, 32, 35,
                36, 37, 40, 41, 42, 43, 45, 46,
            ],
            moreFaults: [.alone, .population]
        ),
    ]
}
