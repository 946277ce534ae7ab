import Simulation

/// A schedule that once went wrong, with the fewest steps that showed it.
struct Story: Sendable {
    var seed: UInt64
    var steps: [Int]
    var faults: Set<SimFault>?
    /// Besides what the seed decides.
    var moreFaults: Set<SimFault> = []
}

/// New ones come last, each with what was wrong; `simulate --shrink` tells the steps. They stand for themselves: nothing that a new kind of step
/// or fault draws may change what they play.
extension Story {
    static let all: [Story] = [
        // Renamed alike on two devices, and edited on one of them: the row kept the old name.
        Story(seed: 193, steps: [1, 15, 16, 19, 28]),
        // A symlink whose answer was lost was renamed over a file: it was taken for settled under its old name.
        Story(seed: 21, steps: [5, 7, 8, 9, 10, 11, 13, 16, 17, 18]),
        // Exchanged names while another device edited one of the files: a new item asked for its name for ever.
        Story(seed: 199, steps: [2, 6, 14, 16, 27]),
        // A large file was announced under a name that another device then got: it asked for the name for ever.
        Story(seed: 1176, steps: [15, 25, 27, 34, 43, 44]),
        // A mode was set while a file was only announced: with the mode applied, the content was never agreed on.
        Story(seed: 2225, steps: [0, 6, 14, 25, 34, 35]),
        // A folder was removed whose file others had edited: it waited for the file's deletion, which is never sent.
        Story(
            seed: 312,
            steps: [
                2, 5, 6, 9, 10, 14, 15, 16, 17, 19, 20, 24, 25, 27, 28, 32, 33, 34, 35, 36, 37, 41, 43, 44, 45, 46, 47,
                49, 51, 52,
            ]
        ),
        // A file that was announced gave its id to a folder of that name.
        Story(seed: 2090, steps: [2, 4, 5, 10, 11, 13, 14, 15, 16, 18, 19, 22, 24, 28]),
        // An announcement was taken back although its file had only been renamed.
        Story(seed: 861, steps: [3, 4, 13, 26, 30, 31, 33, 44, 47, 49, 52]),
        // A file whose answer was lost was exchanged with another, and came into being a second time.
        Story(seed: 875, steps: [0, 11, 13, 14, 15, 17, 21, 23, 27, 28, 29, 31, 40, 43, 44, 46]),
        // A file that made room for another was replaced there, and then looked for under its old name: it stayed, and came a second time.
        Story(
            seed: 902_597,
            steps: [2, 3, 6, 7, 8, 9, 10, 12, 13, 16, 17, 20, 21, 24, 27, 33, 39, 41, 46, 48, 49]
        ),
        // Its old name was another's by now: under the name on the way it was taken for a new item, and sent.
        Story(seed: 313_140, steps: [1, 4, 5, 7, 9, 10, 12, 14, 26, 29, 46, 49]),
        Story(seed: 313_421, steps: [9, 12, 13, 19, 22, 29, 30, 45, 48, 50]),
        Story(seed: 313_838, steps: [15, 17, 24, 25, 26, 30, 33, 40, 42]),
        // Two folders that are one in the other, the other way round elsewhere: the inner one made room within the outer.
        Story(seed: 306_800, steps: [0, 5, 15, 18, 26, 27]),
        // A move was refused as a circle, and another one waited for it to be made.
        Story(
            seed: 907_843,
            steps: [0, 2, 3, 6, 10, 12, 17, 18, 19, 23, 25, 26, 28, 31, 37, 38, 40, 41]
        ),
        // A folder was removed into which others had moved a file: that was taken for this device's own moving it out.
        Story(seed: 304_759, steps: [9, 11, 18, 28, 29, 31, 32, 33, 40, 41, 49, 55]),
        // A folder was removed with a file in it whose first sending was not answered, and which others had edited.
        Story(seed: 309_510, steps: [0, 4, 8, 10, 12, 17, 19]),
        // A file was renamed while it was only announced, and the answer lost: a new one under its old name was taken for it.
        Story(seed: 308_076, steps: [3, 8, 9, 10, 14]),
        // The same with a folder under its old name.
        Story(seed: 309_772, steps: [3, 12, 15, 19, 23]),
        // A file exchanged with one that was only announced, whose author gave it up: the announced one's placeholder stayed for ever.
        Story(seed: 1_010_698, steps: [3, 7, 11, 18, 20, 27, 45]),
        // The same where its content came after all, as another revision, after it had been asked for in vain, or not at all.
        Story(seed: 1_004_444, steps: [1, 3, 4, 6, 8, 12, 13, 15, 16, 18, 22, 25, 26, 27, 28, 31, 34, 39]),
        Story(seed: 4_008_184, steps: [3, 4, 9, 11, 14, 15, 17, 18, 21, 22, 25, 30, 31]),
        Story(seed: 4_103_356, steps: [3, 4, 42, 53]),
        // A new file has the name to which a folder is to come back whose move was refused as a circle.
        Story(seed: 2_001_254, steps: [2, 3, 5, 9, 12, 24, 26, 27, 28, 34, 35]),
        // Two items had the same name in what was agreed on, since one of them had made room: the other one was never looked at.
        Story(seed: 2_011_819, steps: [8, 11, 13, 15, 20, 22, 29, 30, 39, 40, 44, 45]),
        // A folder was removed and made again: what had lain in it was not missed.
        Story(seed: 2_013_388, steps: [3, 7, 8, 9, 12, 16, 17, 18, 25, 30, 43, 47, 52]),
        // Renamed and then removed, or replaced, before the rename was sent: it was not missed under the old name.
        Story(seed: 3_002_460, steps: [1, 4, 5, 11, 15, 20, 22, 24]),
        Story(seed: 3_504_434, steps: [7, 10, 21, 22, 29, 30]),
        Story(seed: 6_603_286, steps: [4, 7, 9, 12, 19]),
        // A backup was restored, and a folder removed before it had been looked at: what had lain in it was not missed.
        Story(seed: 32_609, steps: [10, 15, 22, 33, 35, 36, 37]),
        // A device knew nothing any more of a file that it had announced: nobody would ever have sent it.
        Story(seed: 22_183, steps: [0, 4, 8, 11, 14, 16, 18, 19, 34, 35]),
        // An attribute was set on a folder a moment before others' move of it came.
        Story(seed: 4_506_622, steps: [2, 22, 23, 25]),
        // A folder that others had moved into one that was removed here, removed and made anew here.
        Story(seed: 9_643_013, steps: [7, 9, 11, 13, 16, 18, 22, 24, 32, 36, 38, 43, 44, 45]),
        // Renamed before the answer to its creation had come, and replaced before the rename was sent.
        Story(seed: 9_646_219, steps: [1, 3, 9, 11, 15, 16, 22, 26, 27, 33, 36, 39, 42, 44, 45]),
        // A placeholder that was renamed here, of what its author sent otherwise and others deleted.
        Story(seed: 9_620_014, steps: [8, 20, 21, 27, 39, 41]),
        // What was parked for an item was not looked at when others deleted that.
        Story(seed: 9_821_202, steps: [1, 5, 7, 9, 10, 16, 20, 21, 22]),
        // A full disk: a device that was started then did not look at its files.
        Story(seed: 10_248, steps: [3, 4, 8, 22, 43, 48, 50, 57], faults: allButServerBackups),
        // A restored backup: a folder that had just been put there was taken for another that had had its name.
        Story(seed: 11_590, steps: [4, 5, 12, 15, 21, 23, 25, 29, 42, 43], faults: allButServerBackups),
        // A file was exchanged with a folder, which was removed while others moved the file into it: each waited for the other's going.
        Story(seed: 20_153_802, steps: [1, 3, 11, 15, 17, 18, 23, 26, 27, 34]),
        // A move was refused as a circle, and the folder from which it had gone was removed: that waited for it to go.
        Story(
            seed: 20_184_856,
            steps: [0, 2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 18, 19, 26, 27, 28, 31, 33, 40]
        ),
        // A folder was made on two devices, and the one that found it was killed before it had compared the attributes.
        Story(
            seed: 20_210_402,
            steps: [
                3, 4, 5, 8, 9, 14, 15, 16, 17, 18, 20, 21, 24, 25, 27, 33, 35, 40, 41, 44, 48, 49, 51, 54, 55, 59, 63,
                64, 65,
                66, 67, 68, 69, 70, 73, 74,
            ]
        ),
        // A program exchanged two folders that had both made room: each had the other's name on the way, in the cloud too.
        Story(seed: 20_236_861, steps: [2, 6, 8, 11, 13, 20, 23, 26, 27, 29, 34, 36, 39, 43, 46, 48]),
        // The top folder could not be read at the start: nothing was applied any more.
        Story(seed: 11_268, steps: [8, 9, 15, 16, 22, 23, 28, 40], faults: allButServerBackups),
        // Killed while a folder was about to come back: what lay in it was never looked at.
        Story(
            seed: 13_111,
            steps: [
                0, 1, 4, 6, 7, 9, 10, 11, 12, 13, 15, 17, 18, 20, 21, 24, 25, 28, 29, 30, 32, 33, 35, 38, 40, 41, 42,
                43, 44,
                45, 46, 47, 48, 49, 50, 53, 54, 59, 60,
            ],
            faults: allButServerBackups
        ),
        // A restored backup: the same content was agreed on, its attributes were not compared before the power went.
        Story(
            seed: 40_458,
            steps: [
                2, 6, 8, 9, 12, 13, 15, 19, 20, 26, 27, 28, 29, 30, 31, 32, 33, 34, 36, 38, 39, 40, 42, 43,
            ],
            faults: allButServerBackups
        ),
        // A file moved into a new folder of which the cloud had not answered: it was taken for gone, and put back where it was.
        Story(
            seed: 60_005_179,
            steps: [
                1, 2, 3, 4, 5, 8, 11, 12, 14, 15, 16, 17, 18, 19, 26, 27, 28, 29, 30, 31, 32, 34, 35, 36, 42,
                46, 48, 50, 52, 53, 56, 57,
            ]
        ),
        // A rename waited for ever for a name under which something was announced by a device that is no more.
        Story(
            seed: 60_071_461,
            steps: [
                2, 8, 9, 20, 25, 26, 27, 28, 29, 30, 33, 38, 42, 44, 45, 46, 47, 52,
            ]
        ),
        // Renamed by a program on its way into a folder that was removed: each waited for the other.
        Story(
            seed: 70_081_876,
            steps: [
                1, 5, 6, 7, 8, 9, 10, 11, 15, 16, 17, 18, 19, 21, 22, 23, 25, 26, 27, 28, 29, 30, 31, 32, 33,
                35, 37, 38, 40, 43, 45, 46, 48, 49, 50, 51, 52, 53, 55, 57, 58, 59, 60, 61,
            ]
        ),
        // A restored backup: another item's placeholder had the name of an announced one, and its content was never sent.
        Story(
            seed: 105_463,
            steps: [
                0, 1, 4, 6, 8, 10, 12, 16, 17, 19, 20, 21, 23, 24, 27, 30, 31, 32, 34, 36, 38, 42, 44, 46, 48,
                49, 54, 64, 66, 67, 68, 69,
            ],
            faults: manyDisasters
        ),
        // A restored backup: others had removed a folder, and what was new in it was not sent under its second name.
        Story(
            seed: 40_558_220_507_958,
            steps: [
                0, 1, 3, 5, 7, 8, 9, 10, 12, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30, 31,
                32, 33, 36, 38, 39, 41, 43, 44, 45, 46, 47, 50, 53, 54, 55, 57, 58, 59, 60, 61, 62, 63, 64,
                65,
            ]
        ),
        // A full disk kept a device from writing down an announced file that it had put there; renamed, it waited for a content without end.
        Story(
            seed: 110_330_962,
            steps: [
                1, 3, 5, 9, 10, 13, 24,
            ]
        ),
        // An announced file was exchanged with another, and its author was removed: its placeholder had no item any more.
        Story(
            seed: 110_237_948,
            steps: [
                1, 3, 4, 7, 9, 12, 14, 16, 18, 19, 25, 28, 29, 31, 36, 37, 38, 39, 40, 42, 45, 49, 52, 53, 54, 56,
                59, 69, 70, 74, 75, 76,
            ]
        ),
        // A restored backup: a folder that was taken for new had something in it that was never looked at.
        Story(
            seed: 125_085,
            steps: [
                1, 2, 3, 7, 8, 9, 12, 13, 15, 18, 19, 22, 24, 26, 27, 28, 29, 30, 34, 35, 37, 38, 39, 41, 43, 46,
                47, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60,
            ],
            faults: manyDisasters
        ),
        // An announced file had the name that a folder in transit was to get, and its author's disk had become another's.
        Story(
            seed: 300_012_675,
            steps: [
                0, 2, 8, 9, 11, 14, 33, 35, 37, 38, 40, 41, 44, 45, 62,
            ]
        ),
        // A disk became a copy of another's, on which two folders were just being exchanged: what lay in one of them was not missed.
        Story(
            seed: 500_092_148,
            steps: [
                2, 4, 10, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 30, 31, 33, 34, 48, 49, 50,
            ]
        ),
        // An announced file took the name of the folder in which it was announced, which was removed: each waited for the other.
        Story(
            seed: 500_145_362,
            steps: [
                0, 1, 2, 4, 5, 6, 7, 8, 11, 12, 13, 14, 17, 19, 22, 23, 24, 25, 26, 27, 28, 29, 31,
            ]
        ),
        // Renamed away while another took its name and was sent without an answer: it became what others made of that one.
        Story(
            seed: 500_082_058,
            steps: [
                13, 16, 18, 21, 25, 30, 43,
            ]
        ),
        // A symlink that had taken a deleted one's name got a second name: the item, whose deletion a full disk had lost, was not missed.
        Story(
            seed: 600_460_226,
            steps: [
                5, 9, 11, 12, 14, 29, 30, 33, 39, 63, 64,
            ]
        ),
        // A folder that was sent without an answer went elsewhere, and a new one of its old name was taken for it.
        Story(seed: 600_873_610, steps: [4, 8, 20, 26, 36]),
        // The same, where others had moved the item to the name that a new folder had here: what lay in the former one was missing elsewhere.
        Story(seed: 600_984_340, steps: [4, 8, 10, 42, 46, 48]),
        // Two new folders that were sent without an answer were exchanged.
        Story(
            seed: 810_181_382,
            steps: [
                7, 9, 10, 11, 12, 13, 14, 16, 19, 22, 25, 26, 31, 32, 33, 34, 35, 36, 39, 40, 41, 42, 43, 44, 45,
            ]
        ),
        // Tried in vain for long, and deleted by others meanwhile: it was to be tried again minutes later.
        Story(seed: 820_025_101, steps: [0, 4, 6, 8, 16, 18, 19, 22, 23, 25, 27, 28, 37, 38, 39, 40, 42, 58, 59]),
        // Removed in the moment in which the engine renamed it: the folder was remembered as being there.
        Story(
            seed: 600_873_070,
            steps: [
                0, 2, 6, 7, 8, 12, 14, 19, 22, 24, 25, 27, 28, 29, 30, 32, 33, 35, 36, 38, 42, 43, 45, 47, 49, 50, 51,
                54, 55, 56, 58, 59, 60, 61, 62, 63,
            ]
        ),
        // An ignored folder was found to be one of the cloud's on the way to what lay in it: that stayed here.
        Story(seed: 820_150_763, steps: [0, 1, 2, 10, 11, 13], moreFaults: [.rules]),
        // What others moved to where something ignored is was large: it was read in another pass than the one that looked there.
        Story(
            seed: 820_027_558,
            steps: [5, 8, 10, 11, 16, 33, 38, 39, 42, 43, 50, 51, 56, 57, 65, 68, 69],
            moreFaults: [.rules]
        ),
        // A file with rules whose content was never to come had been exchanged with another item: that one waited for it for ever.
        Story(seed: 820_063_372, steps: [1, 2, 4, 10, 11, 12, 13, 22, 24, 26, 35, 39], moreFaults: [.rules]),
        // Rules changed while those above them were not here: nobody noticed.
        Story(
            seed: 820_097_784,
            steps: [0, 1, 2, 8, 10, 14, 16, 22, 23, 24, 39, 40, 41, 42],
            moreFaults: [.rules]
        ),
        // What is missing of a package referred to a former revision when the device died before it was told to refer to the new one.
        Story(seed: 150, steps: [7, 16, 72], moreFaults: [.packages]),
        // After a backup was restored a package was as agreed on, by other inodes: it was looked at for ever.
        Story(seed: 467, steps: [10, 11, 36, 37, 45, 47], moreFaults: [.packages]),
        // A folder became a package while the row of a file in it did not know that its content had come.
        Story(seed: 111, steps: [4, 6, 8, 9, 11, 13, 14, 15, 16, 23], moreFaults: [.packages]),
        // What is missing of a package referred to an edit that the cloud had not kept, since it knew that content.
        Story(
            seed: 3211,
            steps: [0, 2, 3, 6, 7, 11, 13, 14, 17, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 33, 34, 36, 37, 40],
            moreFaults: [.packages]
        ),
        // A folder was moved out of another one before that became a package: what was in it left the cloud too.
        Story(seed: 1_000_385_612, steps: [54, 62, 64, 65], moreFaults: [.packages]),
        // An announced file was exchanged with one in a package: what came to its place waited for it to be an item again.
        Story(
            seed: 1_000_108_042,
            steps: [0, 2, 4, 6, 9, 16, 17, 20, 22, 23, 27, 37, 38, 39, 40, 41],
            moreFaults: [.packages]
        ),
        // What was sent without an answer took a second name here, which new rules ignore: nobody knew any more that it was an item.
        Story(
            seed: 3_000_836_839,
            steps: [
                0, 1, 5, 7, 8, 11, 12, 14, 15, 18, 20, 21, 24, 25, 26, 27, 28, 29, 30, 31, 68, 70, 71, 72, 74, 75,
            ]
        ),
        // A new file, sent without an answer, was renamed in the cloud to the name of a new folder in which it lay by then.
        Story(seed: 17_976_512_400_820, steps: [0, 1, 5, 6, 8, 10, 14, 16, 17, 19, 31]),
        // An ignored folder goes on as the cloud's, found because of what lies in it: its mode was not compared.
        Story(seed: 38_557_909_714_774, steps: [0, 1, 2, 7, 18, 19, 20, 24, 39, 40, 42, 43, 44, 50, 57, 64, 67]),
        // Announced with another size than it had when it was sent, and moved into a package meanwhile.
        Story(
            seed: 510_451,
            steps: [0, 1, 3, 7, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 31, 32, 33, 42, 43, 44],
            moreFaults: [.packages]
        ),
        // What could not be had of a package stood for another content by then: nobody asked again.
        Story(
            seed: 500_570,
            steps: [
                2, 5, 6, 8, 12, 13, 14, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30, 31, 33, 34, 35, 36, 37, 38, 39, 42, 43,
                48, 52, 54, 55, 56, 57, 58, 59, 148, 153,
            ],
            moreFaults: [.packages]
        ),
        // The same, where it was taken away: nobody would ever have it.
        Story(
            seed: 1_000_174_989,
            steps: [
                0, 4, 12, 13, 14, 17, 19, 20, 21, 25, 26, 27, 28, 29, 31, 33, 34, 35, 40, 41, 43, 44, 45, 46, 49, 53,
                54, 55, 58, 59, 62, 63, 68, 71, 72, 73, 74, 75, 77, 78,
            ],
            moreFaults: [.packages]
        ),
        // A new folder was sent, renamed, and deleted while a pass wrote down what had become of it: nobody looked for the item.
        Story(seed: 11_000_583_498, steps: [14, 20, 29, 33, 36, 40, 41, 42, 45, 47, 51, 56]),
        // A placeholder that had been renamed and then replaced, and an author whose disk was gone: its old place waited without end.
        Story(seed: 15_000_984_707, steps: [0, 2, 3, 19, 20, 21, 29, 30]),
        // Two names were exchanged, one a placeholder of what was only announced, and that became a name of an announcement without content.
        // Its item had gone on to a content of its own: the other's waited for what would never come.
        Story(seed: 19_000_831_341, steps: [2, 4, 5, 6, 8, 14, 18, 19, 24, 30]),
        // A folder that left, since it became a package, waited for a content that nobody had any more: it had been replaced by a newer one.
        Story(
            seed: 8_000_070_120,
            steps: [
                1, 2, 5, 6, 7, 8, 10, 14, 15, 17, 21, 22, 23, 25, 28, 29, 31, 34, 37, 38, 39, 40, 41, 47, 55, 60,
            ],
            moreFaults: [.packages]
        ),
        Story(
            seed: 8_000_027_475,
            steps: [
                3, 4, 5, 11, 12, 17, 18, 23, 24, 26, 27, 28, 29, 32, 34, 41, 44, 47, 48, 49, 50, 53, 54, 59, 60, 65, 77,
            ],
            moreFaults: [.packages]
        ),
        // A folder, sent without an answer, took the name of a package on its way, and got another one that makes a package of it: what lay in
        // it was no item any more, and nobody looked for that item at its old place.
        Story(
            seed: 31_000_081_448,
            steps: [
                0, 3, 6, 7, 8, 10, 12, 13, 17, 18, 19, 21, 26, 28, 30, 31, 32, 33, 34, 36, 38, 39, 41, 44, 49, 50, 51,
                52,
                53, 54, 55, 56, 57, 59, 60, 65, 67, 69, 70, 71, 72, 73, 74, 75, 77,
            ],
            moreFaults: [.packages]
        ),
        // What others had edited became part of a package, folder and all: the folder waited for a deletion that is never sent.
        Story(
            seed: 32_000_065_385,
            steps: [
                0, 5, 6, 15, 16, 18, 19, 23, 27, 28, 29, 30, 31, 33, 34, 36, 37, 39, 40, 42, 45, 48, 52, 53, 56, 57, 58,
                60,
            ],
            moreFaults: [.packages]
        ),
        // A package got a name that is ignored, and another one its own: nobody looked there, and the first could not be told what it is.
        Story(
            seed: 34_000_055_061,
            steps: [
                0, 1, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 22, 23, 24, 25, 26, 28, 29, 30, 31, 33,
                34, 35, 45, 46, 47, 48, 49, 125, 126, 127, 128, 129, 130, 132, 133, 135, 136, 138, 139, 140, 141, 142,
                144, 145, 147, 148, 152, 153, 154, 155, 156,
            ],
            moreFaults: [.packages]
        ),
        // A package changed places with a folder that was ignored: as an ordinary folder it was never looked into, and placeholders in it stood
        // for what is but a saved version.
        Story(
            seed: 41_000_016_578,
            steps: [
                0, 1, 5, 7, 8, 9, 13, 14, 16, 20, 21, 23, 25, 27, 28, 30, 31, 32, 33, 34, 35, 39, 40, 41, 43, 48, 50,
                51,
                52, 53, 61, 64, 66, 67, 68, 70, 73, 84, 87, 88, 92,
            ],
            moreFaults: [.packages, .cases, .rules]
        ),
        // A folder had become part of a package, and stayed in the cloud since others had changed what lay in it: that was looked at in the same
        // pass, before it was known, and then never put back.
        Story(
            seed: 51_000_006_435,
            steps: [0, 1, 9, 10, 11, 12, 13, 14, 18, 19, 20, 21, 22, 24, 26, 37, 39, 41, 45, 47],
            moreFaults: [.packages, .cases, .rules]
        ),
        // The same way into a package, at whose end a folder and what lay in it waited for each other.
        Story(
            seed: 51_000_004_514,
            steps: [
                0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18, 20, 22, 23, 24, 25, 26, 27, 28, 29, 30,
                32, 33, 34, 35, 37, 38, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 57, 58, 59, 61, 62, 65,
                66, 67, 68, 70, 71, 74, 76, 79, 81,
            ],
            moreFaults: [.packages, .cases, .rules]
        ),
        // A folder was set back while nothing ran: what had been deleted since in a folder that came back with it as another inode was not looked at.
        Story(
            seed: 61_000_000_576,
            steps: [
                4, 5, 17, 18, 22, 32, 41, 43, 45, 46, 47, 48, 119, 120, 121,
            ]
        ),
        Story(
            seed: 61_000_000_114,
            steps: [
                11, 14, 18, 19, 20, 24, 34, 67, 68, 72, 73, 74,
            ],
            moreFaults: [.stops, .treesSetBack]
        ),
        // The server was restored, and did not know a link under whose name it has had a file: nobody looked at the link's row.
        Story(
            seed: 60_000_001_922,
            steps: [
                17, 31, 35, 37, 40, 44, 56, 57, 61, 62,
            ],
            moreFaults: [.serverBackups]
        ),
        // The same with what a device had just deleted and not written down: it waited for what nobody has.
        Story(
            seed: 60_000_002_202,
            steps: [
                2, 3, 10, 11, 12, 13, 14, 15, 34, 35, 38, 39, 46, 47, 53, 57, 58, 59, 61,
            ],
            moreFaults: [.serverBackups]
        ),
        // Rules whose content went with the server: what is new in their folder waited for them for ever.
        Story(
            seed: 60_000_002_462,
            steps: [
                0, 2, 13, 16, 20, 21, 33, 34, 38, 39,
            ],
            moreFaults: [.serverBackups]
        ),
        // A restored device's placeholder of what went with the server was removed, and not missed.
        Story(
            seed: 60_000_003_303,
            steps: [
                1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 26, 30, 38, 39, 42, 43, 46, 47, 58, 59, 60, 62, 63,
            ],
            moreFaults: [.serverBackups]
        ),
        // A folder set back to the moment in which one file had made room and another was still under its name: both were that item.
        Story(
            seed: 73_000_007_606,
            steps: [
                0, 1, 3, 4, 8, 10, 11, 12, 13, 15, 16, 17, 18, 21, 24, 27, 29, 31, 32, 33, 34, 36, 37, 38, 41, 42, 111,
                112,
                113, 115, 116,
            ]
        ),
        // A disk that failed while one look had led to another: what had been seen in part was forgotten.
        Story(
            seed: 62_000_006_437,
            steps: [
                0, 1, 2, 4, 5, 6, 7, 9, 12, 13, 14, 15, 16, 18, 19, 20, 22, 24, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,
                36,
                37, 38, 39, 40, 41, 42, 43, 44, 46, 58, 59, 60, 61, 65, 66, 67, 69, 71, 72,
            ],
            moreFaults: [.packages, .cases, .rules, .stops, .treesSetBack]
        ),
        // Such a placeholder had the name that the cloud has given to another item, which never came.
        Story(
            seed: 60_000_030_387,
            steps: [
                0, 3, 4, 6, 10, 11, 15, 16, 17, 24, 26, 32, 33, 35, 42, 51, 52, 53, 54, 55, 56, 58,
            ],
            moreFaults: [.serverBackups]
        ),
        // A placeholder that a folder was set back to, and nobody knows, waited on when what it stands for had come.
        Story(
            seed: 61_100_007_261,
            steps: [
                1, 3, 4, 8, 9, 16, 19, 23, 29, 30, 31, 32, 107, 108, 109,
            ],
            moreFaults: [.serverBackups]
        ),
        // A folder set back to when another item had the name of one that went with the server.
        Story(
            seed: 61_100_008_556,
            steps: [
                1, 3, 7, 8, 11, 13, 21, 22, 24, 29, 32, 53, 54, 55, 56, 57,
            ],
            moreFaults: [.serverBackups]
        ),
        // A placeholder that nobody knows had the name of a folder, which never came.
        Story(
            seed: 61_100_015_800,
            steps: [
                2, 5, 11, 16, 23, 26, 31, 41, 42, 44, 45, 50, 51, 56, 57, 58,
            ],
            moreFaults: [.serverBackups]
        ),
        // What went with the server was renamed, and a program saved over it.
        Story(
            seed: 61_100_049_120,
            steps: [
                9, 11, 14, 18, 30, 38, 41, 42, 43, 44, 45, 46, 47, 49, 50,
            ],
            moreFaults: [.serverBackups, .cases]
        ),
        // Pages were cut off, and what had changed in those to come was older when the server was restored: nobody told it any more.
        Story(
            seed: 61_100_047_836,
            steps: [
                0, 3, 5, 7, 10, 11, 14, 17, 18, 19, 20, 26, 27, 30, 32, 35, 36, 38, 39, 40, 44, 45, 48, 50, 51, 52, 56,
                57, 58, 60, 61, 62, 63,
            ],
            moreFaults: [.serverBackups]
        ),
        // A folder was moved out of one that could not be read when the device came back: nobody looked at what was new in it.
        Story(
            seed: 74_000_062_441,
            steps: [0, 2, 3, 4, 6, 8, 9, 11, 12, 13, 16, 17, 21, 26, 27, 30, 31, 36, 37, 61]
        ),
        // What looked at an item that was right woke what waited for another of its place, and that woke it: for ever.
        Story(
            seed: 61_100_128_437,
            steps: [
                0, 1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 14, 15, 16, 20, 22, 24, 26, 27, 28, 30, 32, 34, 35, 37, 38, 40, 48,
                53,
                54, 57, 58, 59, 60, 61,
            ],
            moreFaults: [.serverBackups]
        ),
        // What was on its way to another name, and went on as another item, was missed by a look that had something else to do next.
        Story(
            seed: 75_000_006_574,
            steps: [
                1, 5, 7, 9, 10, 11, 13, 14, 18, 20, 21, 24, 25, 28, 30, 35, 36, 39, 41, 42, 46, 47, 53, 54, 61,
            ]
        ),
        // A folder set back to when a file that nobody has had a folder's name: that one waited for it.
        Story(
            seed: 76_000_034_878,
            steps: [
                3, 4, 5, 6, 7, 8, 12, 14, 15, 16, 20, 23, 25, 27, 28, 30, 31, 32, 33, 34, 37, 38, 45, 46, 47, 104, 105,
                106,
            ]
        ),
        // A folder had become a package that others had put something into: where several works led to it, one of them was taken for done.
        Story(
            seed: 76_000_159_254,
            steps: [
                29, 30, 35, 37, 38, 40, 42, 44, 52, 54, 55, 86, 92, 94, 96, 97, 103, 107, 109, 110, 112,
            ],
            moreFaults: [.packages]
        ),
        // A placeholder of which a restored server knows nothing, and that had no row in a device's backup, kept an item's name.
        Story(
            seed: 78_000_044_961,
            steps: [
                0, 1, 2, 7, 8, 10, 11, 16, 17, 21, 32, 34, 38, 39, 42, 44, 45, 46, 48, 49, 50, 51,
            ],
            moreFaults: [.serverBackups]
        ),
        // A move was recorded of a placeholder that stood for what a restored server had lost, and its device lost its power before it looked
        // at that.
        Story(
            seed: 78_200_037_128,
            steps: [
                0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 15, 16, 17, 19, 20, 22, 24, 25, 26, 30, 31, 32, 37, 38, 39, 42,
                46,
            ],
            moreFaults: [.serverBackups]
        ),
        // A package of which nothing was here, on a device that heard of a server's restoration first.
        Story(
            seed: 61_200_000_007,
            steps: [30, 31, 68],
            moreFaults: [.packages, .serverBackups]
        ),
        // Others had sent something else than the package of which a part was here.
        Story(
            seed: 61_200_000_067,
            steps: [40, 41, 44, 45, 109, 110],
            moreFaults: [.packages, .serverBackups]
        ),
        // A program swapped files that were not here, by three renames, while a pass looked: one was taken for deleted, or for what the other
        // had been.
        Story(seed: 91_000_203_115, steps: [22, 23, 32, 71], moreFaults: [.packages, .races]),
        Story(
            seed: 91_000_202_200,
            steps: [0, 1, 4, 5, 7, 9, 16, 17, 20, 22, 25, 30, 48, 49, 51, 53, 54],
            moreFaults: [.cases, .races]
        ),
        // A folder that a program removed while the scan at the start read others was asked for its names again and again.
        Story(seed: 98_600_001_867, steps: [0, 1, 3, 4, 10, 11, 47], moreFaults: [.races, .serverBackups]),
        // One that was renamed then, to where the scan had been, was not looked into.
        Story(
            seed: 98_600_004_800,
            steps: [1, 5, 6, 7, 8, 11, 13, 14, 21, 22, 25, 26, 27, 29, 30, 32, 33, 36, 37, 39, 42, 45, 52],
            moreFaults: [.links, .races]
        ),
        // Two were swapped, and one of them could not go where it was to: it kept the name on the way.
        Story(seed: 98_800_026_257, steps: [1, 2, 4, 6, 8, 14]),
        // One was deleted elsewhere and written to here while it made room: it came back under the name on the way.
        Story(
            seed: 98_700_025_110,
            steps: [0, 5, 12, 14, 19, 23, 24, 27, 29, 30, 31, 32, 36, 38, 40, 42, 45, 46, 48],
            moreFaults: [.links]
        ),
        // What waited for a placeholder that an apply had replaced waited on.
        Story(
            seed: 98_500_002_558,
            steps: [3, 6, 7, 12, 13, 15, 19, 20, 22, 23, 26, 28, 29, 41, 42, 43, 44, 45, 47, 48, 61, 62, 63, 64, 65],
            moreFaults: [.races, .serverBackups]
        ),
        // A file was tagged within the tick in which it had been looked at, and its device stopped: by its times it was as it had been sent.
        Story(
            seed: 99_700_071_806,
            steps: [
                0, 1, 3, 4, 9, 10, 11, 13, 14, 15, 16, 17, 18, 20, 21, 23, 24, 25, 26, 27, 31, 32, 36, 38, 40, 43, 44,
                73, 75, 76,
            ],
            moreFaults: [.races]
        ),
        // A folder became a package, and what had been a package in it another item outside: the folder was to go for ever, since others had changed
        // that package.
        Story(
            seed: 99_700_055_227,
            steps: [
                1, 4, 5, 8, 9, 11, 14, 15, 16, 19, 22, 24, 28, 29, 34, 35, 36, 38, 40, 41, 42, 43, 47, 50, 51, 52, 55,
                56,
            ],
            moreFaults: [.lateWords, .links, .packages]
        ),
        // Two items had one inode by their rows, and the older one made what was missing of the newer depend on a version that is not kept.
        Story(
            seed: 99_800_006_043,
            steps: [
                0, 2, 3, 5, 6, 7, 8, 12, 13, 14, 15, 19, 20, 21, 25, 27, 28, 29, 31, 32, 38, 43, 44, 48, 49, 54, 55, 56,
                57, 58, 60, 63, 77, 78, 83, 84, 85,
            ],
            moreFaults: [.packages]
        ),
        // One had made room for another, and the server that was restored meanwhile did not know any more where it was to go.
        Story(
            seed: 99_950_025_673,
            steps: [1, 2, 3, 6, 11, 13, 15, 18, 20, 23, 24, 25, 26, 28, 33, 38, 39, 51, 52],
            moreFaults: [.races, .serverBackups]
        ),
        // A restored server gave a name back to an item, and another one was there by then: the first was missed by nobody.
        Story(
            seed: 99_960_024_067,
            steps: [2, 3, 6, 7, 10, 11, 30, 31, 35, 36, 37, 38],
            moreFaults: [.lateWords, .links, .races, .serverBackups]
        ),
        // A link's edit whose answer was lost was sent as a new one: what another device had made of the link since was gone.
        Story(
            seed: 100_000_143_214,
            steps: [4, 6, 7, 8, 9, 10, 12, 14, 16, 17, 22, 24, 25, 26, 30, 31, 37],
            moreFaults: [.links]
        ),
        // A file that had been another item was given up under a name that is ignored, and was nowhere but in a version.
        Story(
            seed: 99_971_005_969,
            steps: [
                0, 1, 3, 4, 5, 6, 8, 9, 12, 14, 15, 16, 17, 18, 19, 20, 22, 23, 25, 26, 28, 29, 30, 31, 32, 33, 34, 35,
                37, 38, 39, 40, 42, 43, 44, 45, 46, 47, 49, 50, 51, 52, 53, 54, 56, 57, 58, 59, 60, 61, 62, 64, 65, 66,
                67, 68, 70, 71, 72, 73, 74, 75, 76, 78, 79,
            ],
            moreFaults: [.backups, .cases, .lateWords, .races]
        ),
        // A folder became a package while what was sent of a file in it was not answered: the file was to come back into the folder, and the folder
        // to go.
        Story(
            seed: 13_339_209_503_577,
            steps: [
                1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 15, 16, 17, 18, 19, 20, 22, 23, 24, 26, 27, 28, 29, 30, 31, 32,
                34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 45, 46, 47, 48, 49, 50, 52, 53, 54, 55, 56, 57, 58, 59, 60,
                61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 79, 80, 81, 84, 85,
            ],
            moreFaults: [.packages, .races]
        ),
        // A package that was saved anew became a folder before the answer had come: the folder was sent as what the package had been.
        Story(
            seed: 13_339_209_515_498,
            steps: [
                0, 1, 2, 3, 4, 5, 6, 8, 9, 11, 13, 14, 15, 16, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 32, 33,
                34, 36, 37, 38, 41, 48, 49,
            ],
            moreFaults: [.packages, .races]
        ),
        // A tree was set back, and a folder had the number of what had been a file: the file was waited for there, for ever.
        Story(
            seed: 99_971_013_234,
            steps: [
                0, 1, 2, 3, 4, 5, 6, 8, 9, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 27, 28, 29, 31,
                32, 33, 34, 36, 37, 39, 40, 42, 43, 44, 45, 47, 48, 53, 54, 56, 57, 58, 59, 60, 61, 62, 63,
            ],
            moreFaults: [.lateWords, .races, .serverBackups]
        ),
        // A file was swapped into a package and moved on in it, and the package became a folder: where the file had come to first it was looked for
        // when others deleted it, and was forgotten where it was.
        Story(
            seed: 150_000_006_211,
            steps: [
                0, 4, 5, 8, 10, 11, 12, 13, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30, 31, 33, 34, 35,
                36, 38, 39, 41, 42, 45, 46, 47, 48, 49, 50, 51, 53, 55, 56, 57, 59, 60, 66, 72, 73,
            ],
            moreFaults: [.lateWords, .packages, .races]
        ),
        // What had been moved out of a removed folder, from what had become a package there, was to get that folder's name: it stepped aside in the
        // folder, which could not go with it in there.
        Story(
            seed: 150_000_015_365,
            steps: [
                1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 19, 21, 22, 26, 31, 33, 34, 37, 41, 42, 43, 45, 46, 47, 48, 49, 50,
                60, 64, 68, 80, 88,
            ],
            moreFaults: [.packages, .races]
        ),
        // A package that others deleted had given way under another name before what was changed in it was sent, and the power went: what was changed
        // was taken for agreed on, and deleted.
        Story(
            seed: 151_000_004_363,
            steps: [
                0, 1, 2, 3, 4, 7, 9, 11, 14, 15, 17, 22, 23, 24, 25, 26, 27, 29, 31, 33, 34, 35, 36, 37, 38, 40, 41,
                42, 43, 44, 46, 47, 48, 51, 52, 53, 55, 56, 58, 59, 60, 137, 139, 140, 142, 143, 145, 148, 150, 152,
                157, 160,
            ],
            moreFaults: [.packages, .races]
        ),
        // A folder with rules became a package: the rules, which are none there, were looked at 300 times a second.
        Story(
            seed: 170_000_024_851,
            steps: [
                0, 1, 3, 5, 7, 8, 10, 11, 12, 15, 16, 18, 19, 20, 21, 22, 23, 24, 26, 27, 29, 31, 32, 33, 38, 39,
                40, 41, 46, 47, 48, 49, 51, 52, 53, 56, 58, 59,
            ],
            moreFaults: [.cases, .lateWords, .packages, .races]
        ),
        // A link was renamed over another, that was not answered, and it was renamed again: it was taken for what it had been, of which
        // the deletion had been sent along, and the link was gone.
        Story(
            seed: 200_000_030_452,
            steps: [
                2, 5, 10, 11, 14, 15, 16, 19, 22,
            ],
            moreFaults: [.lateWords, .links, .races]
        ),
        // An item that had made room came back under a name that something ignored has here: it waited for that to go, for ever.
        Story(
            seed: 200_000_054_757,
            steps: [
                1, 2, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 18, 21, 22, 23, 26, 28, 29, 32, 33, 36, 37, 38, 40, 41, 43, 44,
                47, 48, 51, 52, 127, 128, 129,
            ],
            moreFaults: [.lateWords]
        ),
        // A folder was moved to where nothing is synced from while others made something in it: it came back, and what the others had made
        // did not.
        Story(
            seed: 300_000_017_239,
            steps: [
                1, 5, 7, 10, 11, 31, 33, 34, 35, 39, 54,
            ],
            moreFaults: [.noSync]
        ),
        // The same, below a folder that was moved there.
        Story(
            seed: 300_000_009_305,
            steps: [
                1, 3, 4, 5, 7, 13, 16, 17, 18, 19, 22, 25, 26, 27, 29, 30, 32, 33, 41, 42, 43, 44, 45, 46, 47, 48, 49,
                51,
            ],
            moreFaults: [.lateWords, .noSync]
        ),
        // What had been sent without an answer was swapped with something that is not synced: that one waited for the other's row, for
        // ever, and the other's item stayed in the cloud.
        Story(
            seed: 300_000_046_043,
            steps: [
                0, 4, 5, 6, 7, 8, 12, 13, 14, 15, 16, 18, 23, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 37, 39, 42, 43,
                44, 46, 47, 48, 49, 50, 57, 58, 60, 64, 66, 67,
            ],
            moreFaults: [.lateWords, .noSync, .races]
        ),
        // A folder that was sent without an answer went to where nothing is sent from while others put something in it: its deletion,
        // which the cloud refuses, was sent for ever.
        Story(
            seed: 310_000_008_146,
            steps: [
                9, 19, 23, 25, 29, 34,
            ],
            moreFaults: [.cases, .noSync, .races]
        ),
        // A placeholder of what never came was exchanged with something that is not synced: neither it nor what had its name by then went
        // on.
        Story(
            seed: 310_000_019_388,
            steps: [
                0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 24, 25, 26, 27, 28, 29,
                30, 31, 32, 33, 34, 35, 39, 41, 43, 44, 45, 46, 47, 54, 55, 56, 57, 58,
            ],
            moreFaults: [.noSync, .races]
        ),
        // A link went to where nothing is synced, which was sent, and the power went: it was at its name again, from which the cloud's
        // word took it.
        Story(
            seed: 330_000_066_390,
            steps: [
                2, 3, 7, 8, 11, 13, 14, 15, 19, 21, 22, 23, 25, 26, 29, 30, 32, 34, 35, 36, 37, 38, 39, 41, 43, 44, 45,
                46, 47, 48, 49, 50, 51, 53, 57, 58, 61, 63,
            ],
            moreFaults: [.kills, .links, .noSync, .powerLosses, .races]
        ),
        // A file with several names had gone on as an item by two of them in one pass: the second one was never sent.
        Story(
            seed: 500_000_004_329,
            steps: [
                0, 1, 2, 3, 7, 22, 23, 24, 26, 32, 34, 35, 36, 39, 42, 43, 45, 46, 47, 52, 53, 54, 55, 56, 60, 61, 62,
                63, 66, 67,
            ],
            moreFaults: [.hardLinks, .links, .serverBackups]
        ),
        // What had made room had got its new name from a program as well: the disk refused to move it there, for ever.
        Story(
            seed: 500_000_006_253,
            steps: [
                1, 11, 12, 20, 25, 27, 37, 38,
            ],
            moreFaults: [.hardLinks, .lateWords]
        ),
        // The connection was lost and the disk refused what had been done until then: what had not been written down was taken for
        // settled.
        Story(
            seed: 500_000_006_677,
            steps: [
                0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31, 33, 34,
                35, 36, 37, 38, 40, 41, 42, 43, 44, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 61, 62, 63,
                64, 65, 66, 67, 68,
            ],
            moreFaults: [.cases, .hardLinks, .races]
        ),
        // A large new file with two names was announced, taken back and announced anew, without end.
        Story(
            seed: 500_000_001_087,
            steps: [
                2, 5, 7, 8, 9, 10, 11, 12, 18, 20, 22, 26, 28, 29, 31, 34, 38, 40, 41, 45, 50, 52, 53, 55, 59,
            ],
            moreFaults: [.hardLinks]
        ),
        // Others set the mode of an item whose file has another name here: the other name's item had that mode on this device only.
        Story(
            seed: 500_000_000_070,
            steps: [
                11, 19, 20, 35, 37, 39,
            ],
            moreFaults: [.hardLinks, .links]
        ),
        // Others moved an item to a name that its file had got here as well: its former name was left, and never sent.
        Story(
            seed: 500_000_002_807,
            steps: [
                4, 5, 6, 7, 10,
            ],
            moreFaults: [.hardLinks]
        ),
        // An item was to get the name of something ignored, whose file has another name that is an item: it waited for that to go, for
        // ever.
        Story(
            seed: 600_000_033_951,
            steps: [
                2, 38, 39, 44, 72,
            ],
            moreFaults: [.hardLinks, .noSync]
        ),
        // One of the names of a file was moved into a package: the item that it was never left the cloud.
        Story(
            seed: 600_000_034_210,
            steps: [
                0, 1, 4, 5, 10, 14, 15, 17, 18, 20, 21, 23, 24, 25, 29, 34, 35, 37, 50,
            ],
            moreFaults: [.hardLinks, .packages]
        ),
        // A further name that had been announced went on as what others had announced under it: its own announcement was never taken back.
        Story(
            seed: 620_000_009_747,
            steps: [
                2, 10, 13, 14, 20, 26,
            ],
            moreFaults: [.hardLinks]
        ),
        // An item was found by both names of its file, and went with the one: the other was left, and never sent.
        Story(
            seed: 620_000_063_733,
            steps: [
                1, 5, 9, 11, 16,
            ],
            moreFaults: [.hardLinks]
        ),
        // A link went to where nothing is synced and came back before the answer: its own deletion took it away.
        Story(
            seed: 620_000_065_712,
            steps: [
                0, 1, 2, 4, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29, 30, 31, 32,
                33, 34, 35, 36, 38, 39, 40, 41,
            ],
            moreFaults: [.links, .noSync]
        ),
        // A folder's deletion was refused when it went to where nothing is synced, and another went on as it: when others deleted that
        // later, it was taken for this device's own doing.
        Story(
            seed: 640_000_108_769,
            steps: [
                7, 9, 13, 16, 18, 24, 26, 29, 30, 33, 37,
            ],
            moreFaults: [.noSync]
        ),
        // What had a move sent ahead of its content was given a mode as well: its new content was taken for what had been agreed on, and
        // never sent.
        Story(
            seed: 700_000_144_737,
            steps: [
                2, 3, 4, 6, 7, 8, 9, 10, 11, 13, 17, 18, 19, 20, 21, 22, 26, 29, 30, 31, 33, 34, 35, 39, 42, 47, 48, 98,
                99, 102, 103,
            ],
            moreFaults: [.hardLinks, .lateWords, .races]
        ),
        // After a backup was restored a folder could get its name only when what lay in it was back, to make room for what went there:
        // that was looked at when the folder had its name.
        Story(
            seed: 700_000_169_789,
            steps: [
                3, 5, 7, 9, 10, 11, 13, 14, 17, 21, 22, 23, 25, 28, 29, 30, 32, 33, 34, 36, 37, 39, 40, 41, 42, 43, 46,
                51, 54, 55, 59, 60, 61, 64, 66, 67,
            ],
            moreFaults: [.hardLinks]
        ),
        // A folder was removed while a failing disk could not be read: what had changed in it was looked at for ever.
        Story(
            seed: 700_000_376_925,
            steps: [
                0, 2, 3, 4, 5, 6, 7, 8, 9, 13, 15, 16, 18, 19, 20, 21, 22, 23, 25, 29, 30, 32, 33, 34, 35, 37, 38, 39,
                40, 54, 55, 58, 59, 60, 61, 62,
            ],
            moreFaults: [.races]
        ),
        // A link was renamed over a file before the cloud had answered, and the power was lost: the log of deletions had outlived the
        // rename, and the link was deleted where alone it was.
        Story(
            seed: 700_000_421_486,
            steps: [
                3, 4, 5, 7, 22, 23, 38,
            ],
            moreFaults: [.hardLinks, .links]
        ),
        // A file had two names, others gave its item the second one, and the disk failed: that the first was something new was never
        // found.
        Story(
            seed: 700_000_998_926,
            steps: [
                3, 4, 10, 14, 15, 16, 17, 20, 21, 28, 29, 30, 31, 32, 33, 34,
            ],
            moreFaults: [.hardLinks]
        ),
        // Others gave a file of two names the one that it had here besides, and changed it, while nothing ran here: that the other name,
        // with what it had been, was something new was never found.
        Story(
            seed: 800_000_468_332,
            steps: [
                0, 2, 5, 7, 8, 11, 12, 13, 24, 25, 34,
            ],
            moreFaults: [.hardLinks, .lateWords]
        ),
        // A link was renamed over another, unanswered, and then over a file: it was taken for what it had been, whose deletion had been
        // sent along.
        Story(
            seed: 800_000_478_481,
            steps: [
                3, 7, 9, 18, 20, 21, 23,
            ],
            moreFaults: [.lateWords, .links]
        ),
        // A folder was moved into another, unanswered; both were removed, and a new one made under its first name, which goes on as its
        // item: the other's deletion was refused for ever.
        Story(
            seed: 800_000_337_263,
            steps: [1, 10, 11, 13, 17, 18, 19, 28, 30, 36, 38, 49, 52, 54, 65],
            moreFaults: [.races]
        ),
        // A folder was set back, in which a file has two names. The one was another item's, and the file, put beside it, took a third one's
        // name: what it had been never came back.
        Story(
            seed: 800_000_490_307,
            steps: [
                4, 5, 7, 8, 10, 11, 12, 13, 14, 15, 19, 20, 21, 22, 23, 25, 26, 27, 30, 31, 32, 33, 34, 35, 37, 38, 39,
                40, 41, 42, 43, 45, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72,
                73, 74, 76, 77,
            ],
            moreFaults: [.cases, .hardLinks, .lateWords, .links, .noSync]
        ),
        // A link was renamed over another whose new target had been sent, unanswered: its own deletion went first, and the power took the
        // rename.
        Story(
            seed: 900_000_001_313,
            steps: [0, 1, 3, 5, 6, 7, 14, 17, 20, 22, 24, 26, 28, 32, 34, 36, 39, 41, 42, 49],
            moreFaults: [.cases, .links]
        ),
        // The one renamed a link over another, and the other that one over the first: each had deleted what the other had kept.
        Story(
            seed: 900_000_050_521,
            steps: [3, 5, 12, 16, 26, 28, 29, 37, 39, 40, 43, 44, 45, 47, 63],
            moreFaults: [.lateWords, .links, .races]
        ),
        // The folder of such a link could come back only under the name of the link whose deletion waited.
        Story(
            seed: 920_000_004_161,
            steps: [
                0, 1, 2, 4, 5, 8, 9, 10, 12, 13, 15, 16, 17, 18, 19, 21, 23, 24, 25, 29, 30, 31, 32, 33, 35, 36, 37, 40,
                41, 42, 44, 45, 46, 48, 49, 50, 51, 52, 55, 58, 59, 60, 61, 62, 63, 64, 65, 66, 68, 69, 70, 71, 73, 74,
                76, 77, 80, 81, 85, 87,
            ],
            moreFaults: [.packages]
        ),
        // A folder became a package in which a file has two names: what that was before never left the cloud.
        Story(
            seed: 940_000_004_713,
            steps: [
                0, 1, 3, 6, 8, 9, 11, 14, 15, 17, 20, 21, 22, 23, 26, 30, 31, 32, 33, 34, 35, 38, 39, 40, 41, 52, 53,
                54, 55, 56, 57, 58, 59, 61, 62, 63,
            ],
            moreFaults: [.hardLinks, .packages]
        ),
        // A link was renamed over one that led to the same, and that others had deleted: both went.
        Story(
            seed: 950_000_015_023,
            steps: [2, 15, 23, 24, 25, 28, 29, 53],
            moreFaults: [.hardLinks, .links]
        ),
        // The clock was set back, or a companion's time came from another device: a database was in use for ever.
        Story(seed: 960_000_000_154, steps: [19, 30, 49], moreFaults: [.databases]),
        // The database went, and what it had as shared memory, by its name, was a file that nobody looked at again.
        Story(seed: 960_000_000_003, steps: [5, 24, 27], moreFaults: [.databases, .lateWords, .links]),
        // A file of such a name was in the cloud, and what a device had under it was taken for shared memory: the one could never come there.
        Story(seed: 960_000_000_314, steps: [2, 36, 46, 47], moreFaults: [.databases]),
        // A claim kept a folder from making room for as long as is tried quickly, and a program moved what waited into it: no room was ever made.
        Story(
            seed: 990_000_051_720,
            steps: [0, 2, 6, 7, 8, 18, 21, 26, 32, 35, 47, 50, 51, 53, 55],
            moreFaults: [.cases, .claims, .serverBackups]
        ),
        // A link was removed before the cloud had answered, in a folder that populates itself: it stayed in the cloud.
        Story(seed: 985_000_006_621, steps: [11, 16, 19, 26], moreFaults: [.links, .population]),
        // What a disk has forgotten to have announced was never taken back from such a folder.
        Story(seed: 985_000_007_952, steps: [7, 28, 29, 33, 40], moreFaults: [.claims, .links, .population]),
        // A device had announced rules and came back as another one, from a backup: what was new beside them waited for them for ever, since
        // nobody removed what the device had been.
        Story(
            seed: 900_000_005_266,
            steps: [
                0, 1, 2, 3, 4, 7, 8, 10, 12, 13, 14, 19, 20, 21, 22, 23, 24, 25, 27, 28, 29, 34, 40, 41, 44, 57, 58, 61,
                62, 65, 66, 67, 68, 70, 71, 72, 73, 74, 75, 76, 77,
            ]
        ),
    ]

    private static let manyDisasters: Set<SimFault> = [
        .tornWrites, .revocations, .clones, .kills, .cuts, .backups, .requests, .answers,
    ]
    private static let allButServerBackups = Set(SimFault.allCases).subtracting([
        .serverBackups, .rules, .packages, .cases, .races, .links, .lateWords, .noSync, .hardLinks, .databases, .claims,
        .population, .alone,
    ])
}
