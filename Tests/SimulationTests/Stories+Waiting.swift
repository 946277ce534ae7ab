import Simulation

extension Story {
    /// What waited for each other, or for what never comes: found by random worlds, and told by those who have followed them.
    static let waiting: [Story] = [
        // An item got the name between, and its author, set back to an earlier state, knew nothing of the one that was to follow.
        Story(
            seed: 3_000_000_606_654,
            steps: [0, 1, 6, 8, 10, 18, 19, 23, 24, 25, 26, 29, 31, 32, 35, 37, 38, 40, 41, 42, 48, 49, 108, 109, 110],
            moreFaults: [.cases, .hardLinks, .population]
        ),
        Story(
            seed: 2_000_000_606_319,
            steps: [
                0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 27, 29, 30, 31,
                34, 36, 37, 38, 39, 40, 42, 43, 44, 45, 47, 48, 49, 50, 51, 57, 60, 61, 62, 63,
            ],
            moreFaults: [.hardLinks, .noSync, .races]
        ),
        Story(
            seed: 2_000_000_175_313,
            steps: [
                1, 2, 3, 6, 7, 10, 12, 13, 15, 17, 18, 19, 20, 22, 23, 24, 26, 28, 30, 31, 32, 33, 34, 35, 37, 39, 41,
                43, 44, 45, 46, 47, 49, 50, 51, 52, 63, 64, 66, 69, 71, 74, 75, 78, 79, 80, 81, 82,
            ],
            moreFaults: [.links, .packages, .races]
        ),
        Story(
            seed: 2_000_000_238_410,
            steps: [
                0, 1, 8, 9, 10, 11, 12, 14, 17, 23, 30, 32, 33, 34, 38, 42, 44, 46, 48, 49, 50, 53, 58, 59, 68, 70, 71,
                72, 73, 78,
            ],
            moreFaults: [.hardLinks, .packages]
        ),
        Story(
            seed: 3_000_000_541_575,
            steps: [
                1, 2, 4, 7, 9, 10, 13, 14, 17, 22, 23, 26, 34, 39, 41, 42, 43, 47, 48, 49, 52, 53, 118, 120, 121, 130,
                131, 133, 137, 138, 139, 140, 141, 142, 143,
            ],
            moreFaults: [.hardLinks, .packages]
        ),
        // A file lost one of its two names to a new file that goes on as the item: it was taken for that item under the other.
        Story(
            seed: 5_000_000_129_678,
            steps: [
                0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 17, 18, 22, 23, 25, 28, 29, 30, 32, 33, 34, 35, 37, 38,
                42, 43, 44, 45, 46, 47,
            ],
            moreFaults: [.claims, .hardLinks, .lateWords, .races]
        ),
        Story(
            seed: 2_000_000_692_409,
            steps: [
                0, 5, 9, 10, 11, 12, 13, 20, 21, 24, 30, 31, 33, 34, 35, 36, 37, 39, 41, 42, 43, 45, 47, 49, 51, 53, 62,
                66, 67,
            ],
            moreFaults: [.hardLinks]
        ),
        // The deletion of a folder waited for what others had moved into it, and that for the folder: it was there by a further name as well.
        Story(
            seed: 2_000_000_185_171,
            steps: [1, 5, 6, 8, 9, 10, 11, 13, 16, 18, 19, 20, 25, 27, 30, 31, 42, 43],
            moreFaults: [.hardLinks, .serverBackups]
        ),
        // What lay in a replaced package was taken for the children of the item as which its folder had been sent before.
        Story(
            seed: 97_147_077_105_084,
            steps: [
                1, 3, 11, 12, 13, 14, 16, 18, 21, 22, 23, 24, 27, 28, 30, 31, 33, 34, 35, 38, 39, 41, 42, 43, 45, 47,
                48, 49, 51, 53, 54, 55, 56, 57, 58, 59, 60, 62, 63, 64, 66, 67, 68, 70, 82, 83, 84,
            ],
            moreFaults: [.claims, .packages, .population]
        ),
        Story(
            seed: 3_000_000_017_135,
            steps: [
                0, 1, 2, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
                30, 31, 33, 34, 99, 101, 102, 103, 108, 109, 110, 111, 113, 115,
            ],
            moreFaults: [.packages, .races]
        ),
        // A placeholder and what had made room for it waited for each other.
        Story(
            seed: 2_000_000_755_797,
            steps: [2, 10, 11, 14, 17, 18, 19, 21, 22, 23, 25, 26, 30, 31, 35, 39, 40, 42, 67, 68, 69],
            moreFaults: [.links]
        ),
        // A placeholder of what nobody brings was in the way of another item for ever, though others had given its own another name.
        Story(
            seed: 1_300_000_017_494,
            steps: [
                0, 1, 3, 4, 5, 10, 11, 12, 13, 14, 16, 20, 23, 24, 25, 34, 35, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46,
                47, 49, 50, 51, 53, 55, 58, 60, 62, 63, 66, 67, 70, 71, 72, 73,
            ],
            moreFaults: [.claims, .hardLinks, .races, .serverBackups]
        ),
        // While it was looked for who has a file's name, a program moved the file on: it got a second name there.
        Story(
            seed: 5_000_000_633_474,
            steps: [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15],
            moreFaults: [.alone, .cases, .hardLinks, .lateWords, .links, .races]
        ),
        // A folder that was set back showed a placeholder under the name of an item that others had deleted: it waited for what never comes.
        Story(
            seed: 3_000_000_043_166,
            steps: [3, 5, 6, 7, 10, 11, 14, 34, 35, 36, 38, 39, 40],
            moreFaults: [.serverBackups]
        ),
        // What took the name of a file that is still being written got a second one after a second.
        Story(
            seed: 7_000_000_010_159,
            steps: [0, 1, 4, 8, 9, 10, 11, 13, 14, 23, 24, 25, 26, 28, 29, 30, 31, 34, 35, 39, 40, 42, 48, 51],
            moreFaults: [.alone, .links, .races]
        ),
        // A folder was found to be the cloud's on the way to a file in it, and its mode was never compared.
        Story(
            seed: 7_000_000_030_722,
            steps: [
                0, 8, 14, 15, 18, 22, 23, 24, 25, 26, 27, 37, 44, 45, 46, 47, 48, 50, 51, 56, 57, 65, 69, 70, 72, 74,
                75, 76,
            ],
            moreFaults: [.races]
        ),
        // What was moved into a package waited for the package, and that for the folder in which it was to be: which had been moved into it.
        Story(
            seed: 7_000_000_134_309,
            steps: [
                0, 2, 3, 4, 6, 8, 9, 10, 12, 14, 15, 16, 18, 21, 22, 23, 24, 25, 28, 29, 31, 32, 34, 36, 37, 38, 47, 48,
                49, 61,
            ],
            moreFaults: [.databases, .packages, .races]
        ),
        // What took the name of a file that a claim keeps from being sent got a second one.
        Story(
            seed: 8_000_000_001_032,
            steps: [0, 1, 2, 3, 15, 19, 21, 25, 26, 27, 32, 33, 34, 36],
            moreFaults: [.alone, .claims, .lateWords, .population]
        ),
        // Two packages took each other's names, and each was read again whenever the other had been.
        Story(
            seed: 8_000_000_129_983,
            steps: [
                1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 24, 25, 27, 28, 29, 30, 31, 32,
                33, 35, 36, 37, 38, 40, 41, 46, 47, 48, 49, 52, 53, 54, 55, 56, 59, 63, 65, 66, 70, 74, 75, 78, 80,
            ],
            moreFaults: [.links, .packages]
        ),
        // A file with rules had been sent without an answer and moved into a new folder, which waited for these rules.
        Story(
            seed: 9_000_000_009_274,
            steps: [
                1, 2, 4, 6, 7, 9, 11, 12, 13, 15, 16, 18, 20, 21, 24, 26, 27, 28, 29, 31, 32, 34, 35, 38, 41, 42, 44,
                46, 48, 51, 52, 53, 54, 55, 56, 59, 61, 62, 74, 76, 77,
            ]
        ),
        // What took the name of a file that lies under a claim by now got a second one.
        Story(
            seed: 9_000_000_095_427,
            steps: [1, 2, 3, 4, 7, 14, 16, 18, 19, 21, 24, 26, 27, 29, 30, 31, 32, 34, 38],
            moreFaults: [.alone, .claims, .links]
        ),
        // The same, where the claim ended in the pass in which the name was refused.
        Story(
            seed: 9_000_000_216_763,
            steps: [0, 3, 12, 13, 14, 15, 16, 17, 20, 22, 23, 24, 26, 27, 29, 30, 31, 35, 36],
            moreFaults: [.alone, .claims, .population]
        ),
        // A folder that was made without its row went on as another item: what was asked for in it meanwhile was nobody's.
        Story(
            seed: 9_000_000_206_203,
            steps: [
                1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 17, 18, 20, 21, 22, 23, 24, 29, 30, 31, 34, 35, 37, 43, 44,
                49, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 65, 66, 67, 69, 70, 72, 74, 76, 77, 79, 81, 82,
                83, 84, 87, 91, 92, 93,
            ],
            moreFaults: [.claims, .packages, .population]
        ),
        // A new folder waited for its name, and the file that had had it for the folder into which it was moved: this one.
        Story(
            seed: 9_000_000_265_917,
            steps: [0, 2, 6, 7, 9, 14, 15, 16, 17, 21, 22, 24, 26, 27, 28, 29, 31, 33, 34, 35, 37, 38, 40, 48, 50],
            moreFaults: [.hardLinks]
        ),
        // A placeholder of what a restored server has lost was asked for by nobody, since another waited for what never comes.
        Story(
            seed: 9_000_000_129_058,
            steps: [
                0, 1, 2, 3, 5, 6, 8, 10, 12, 13, 14, 17, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 35,
                36, 37, 38, 39, 40, 42, 43, 45, 48, 49, 51, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 69, 70, 75, 76, 77,
                79, 80, 81, 82, 83, 84, 85, 87, 88, 89, 90,
            ],
            moreFaults: [.claims, .races, .serverBackups]
        ),
        // A link's new target was sent before it lasted that the former link had got a name from which nothing is sent.
        Story(
            seed: 11_000_000_045_026,
            steps: [5, 6, 8, 18, 21],
            moreFaults: [.claims, .links, .noSync]
        ),
        // A restored device was killed before it could take back what it had announced: nobody remembered that it was its own.
        Story(
            seed: 11_000_000_027_098,
            steps: [
                4, 5, 8, 9, 10, 11, 12, 15, 18, 20, 21, 23, 25, 27, 28, 29, 32, 37, 38, 39, 40, 41, 42, 49, 50, 51,
            ],
            moreFaults: [.claims, .databases, .hardLinks, .noSync, .population, .races]
        ),
        // A folder was given an attribute just before its move came: the row's time said that this had been compared.
        Story(
            seed: 11_000_000_539_993,
            steps: [8, 9, 12, 19, 20, 21, 23, 25],
            moreFaults: [.noSync, .population]
        ),
        // A further name of a placeholder began to wait for its content in the pass in which its item was done with.
        Story(
            seed: 14_000_000_011_182,
            steps: [
                0, 1, 3, 5, 8, 11, 14, 15, 16, 17, 18, 19, 20, 21, 26, 29, 30, 31, 32, 34, 35, 36, 37, 39, 40, 41, 42,
                43, 44, 45, 52, 53, 54,
            ],
            moreFaults: [.claims, .databases, .hardLinks, .races]
        ),
        // A deleted folder held what was to move to the new one of its name, and that one waited for the name.
        Story(
            seed: 14_000_000_033_466,
            steps: [
                2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 16, 17, 18, 19, 20, 22, 23, 24, 26, 27, 28, 33, 34, 36, 38, 39, 40,
                41, 42, 43, 45, 46, 53, 57, 58, 63, 64, 65,
            ],
            moreFaults: [.claims, .population, .races]
        ),
        // What had replaced a moved link where nothing is sent from was taken for that item, on its way out of its deleted folder.
        Story(
            seed: 15_000_000_010_083,
            steps: [
                0, 1, 4, 5, 6, 7, 10, 11, 14, 16, 18, 19, 20, 22, 23, 34, 35, 37, 40, 42, 44, 45, 46, 48, 49, 50, 51,
                52, 53, 55, 56, 58, 59, 68, 69, 78, 79,
            ],
            moreFaults: [.claims, .links, .noSync, .packages, .population, .races]
        ),
        // What had taken a link's name got a second one, while the row of what it was before still knew it: it went with that.
        Story(
            seed: 50_000_000_001_623,
            steps: [5, 8, 12, 13, 14],
            moreFaults: [.claims, .hardLinks, .links, .races]
        ),
        // A folder had become a package here, and others had put something into it: it was replaced before the folder could be given up.
        Story(
            seed: 70_000_000_018_618,
            steps: [
                0, 1, 2, 3, 4, 5, 9, 11, 13, 14, 16, 17, 19, 21, 25, 26, 27, 28, 31, 32, 33, 35, 38, 39, 51, 58, 63,
            ],
            moreFaults: [.databases, .links, .noSync, .packages, .races]
        ),
        // A new file's name was another one's but for its case, which nobody had asked for here: it waited for that one to come.
        Story(
            seed: 70_000_000_081_162,
            steps: [
                1, 3, 6, 7, 8, 11, 12, 13, 14, 15, 17, 18, 19, 21, 22, 26, 27, 29, 31, 32, 34, 35, 36, 42, 43,
            ],
            moreFaults: [.cases, .links, .noSync, .population]
        ),
        // A second name was put off for ever, since the row of what the file was before was written down again and again.
        Story(
            seed: 70_000_000_089_890,
            steps: [4, 5, 6, 9, 10, 11, 14, 15, 17, 18, 20, 21, 22, 23, 24, 28, 29, 32, 33, 35, 38, 44, 45],
            moreFaults: [.hardLinks, .links, .races, .serverBackups]
        ),
        // A folder got attributes from others while the one that it lies in could not be read: nothing was done, and that was taken for done.
        Story(
            seed: 200_000_000_064_485,
            steps: [
                0, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 14, 16, 19, 20, 22, 24, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 37,
                38, 39, 42, 43, 44, 45, 46, 47, 48, 50, 51, 52, 54, 55, 56, 57, 58, 59, 60, 61, 62, 67, 68, 69, 70, 71,
                72, 73,
            ],
            moreFaults: [.claims, .races]
        ),
        // A folder had become a package, which was told without an answer, and was none again: what lay in it was compared as the former folder's,
        // and never sent.
        Story(
            seed: 700_000_000_022_155,
            steps: [
                0, 1, 2, 3, 4, 7, 8, 11, 13, 14, 15, 17, 18, 20, 24, 25, 26, 27, 30, 31, 32, 33, 36, 38, 40, 41, 42,
                111,
                112, 116, 123, 127,
            ],
            moreFaults: [.claims, .packages, .population, .races]
        ),
        // A folder was made for another item that was to go there, just before it was staged itself: what was staged and discarded went on
        // standing for it, and nothing that came into it later was ever shown.
        Story(
            seed: 800_000_000_058_085,
            steps: [
                2, 3, 5, 7, 10, 11, 16, 17, 19, 24, 25, 26, 27, 28, 29, 33, 34, 37, 39, 41, 42, 43, 44, 45, 46, 47, 50,
            ],
            moreFaults: [.population, .races]
        ),
        // Two files were exchanged, one of them with several names, and by a further one it had the name that others gave to its item meanwhile:
        // the item was found there, and as what had its own name.
        Story(
            seed: 1_200_000_000_024_197,
            steps: [
                0, 2, 4, 7, 9, 10, 13, 14, 15, 16, 17, 18, 20, 21, 22, 27, 28, 29, 30, 31, 33, 35, 36, 37, 38, 44, 45,
                46, 47, 48, 49, 50, 51, 52, 57, 58, 59,
            ],
            moreFaults: [.databases, .hardLinks, .lateWords]
        ),
        // A file was to come back, and its folder first, of which the row had gone already, when the device was stopped: as its row was the cloud's,
        // the stop was clean, and at the next start no place led to it.
        Story(
            seed: 1_200_000_000_086_396,
            steps: [
                0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 17, 18, 21, 23, 24, 25, 26, 27, 30, 31, 32, 33, 35, 36, 37, 40,
                41,
                43, 44, 45, 48, 49, 50, 52, 60, 61, 62, 63, 64, 67, 68, 69, 70, 71, 72, 73, 77, 78, 79, 80,
            ],
            moreFaults: [.claims, .population, .races]
        ),
        // A file left its name, and a lookup made another item's placeholder there: that was taken for deleted.
        Story(
            seed: 1_600_000_000_071_753,
            steps: [1, 3, 4, 6, 7, 10, 14, 15, 16, 18, 26, 27, 28, 29, 31, 33, 38, 41, 43, 50, 52, 55, 56, 57],
            moreFaults: [.databases, .lateWords, .population, .races]
        ),
        // A mode had come to the cloud without an answer, and the item was moved here: its row vouched for the mode of before.
        Story(
            seed: 1_700_000_000_047_955,
            steps: [
                1, 2, 3, 4, 6, 7, 8, 11, 12, 15, 17, 20, 21, 23, 26, 27, 30, 31, 34, 41, 42, 43, 46, 47,
            ]
        ),
        // A link's edit had no answer, it was exchanged with an open file, and only its item was looked at: it was told to be deleted, and went when
        // it came back.
        Story(
            seed: 2_100_000_000_129_197,
            steps: [0, 17, 23, 29, 30, 31, 32, 36, 37, 40, 44, 50, 52],
            moreFaults: [.links]
        ),
        // A mode was set within the tick in which new content had come here, and the word of it was lost: by its times the file was as agreed on.
        Story(
            seed: 2_200_000_000_167_970,
            steps: [
                0, 2, 3, 5, 7, 12, 13, 14, 16, 17, 18, 20, 24, 26, 27, 28, 29, 30, 31, 32, 36, 38, 39, 40,
            ],
            moreFaults: [.links, .noSync]
        ),
        // The server was restored while a pass wrote down what it had answered, and the next connection did not know of that: a folder that the cloud
        // no longer had passed for agreed on.
        Story(
            seed: 3_000_000_000_013_961,
            steps: [0, 3, 4, 7, 11, 12, 15, 17, 21, 23, 28, 29, 31, 36, 38, 40, 42, 43, 47, 54, 62, 63],
            moreFaults: [.cases, .links, .serverBackups]
        ),
        // A folder was set back to when a content was staged in it and had no name yet: that counted as left, and nobody had it any more.
        Story(
            seed: 3_000_000_000_011_443,
            steps: [
                4, 6, 7, 10, 11, 14, 16, 21, 22, 28, 29, 35, 36, 42, 46, 47, 48, 49, 50, 69, 70, 73, 74, 75,
            ],
            moreFaults: [.claims, .lateWords, .links, .serverBackups]
        ),
    ]
}
