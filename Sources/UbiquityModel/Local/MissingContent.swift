/// A file whose content is in the cloud and not here.
package struct MissingContent: Hashable, Sendable {
    package var id: ItemID
    /// In the cloud.
    package var place: Place
    package var file: FileContent

    package init(id: ItemID, place: Place, file: FileContent) {
        self.id = id
        self.place = place
        self.file = file
    }
}
