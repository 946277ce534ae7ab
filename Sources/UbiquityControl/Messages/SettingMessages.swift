/// The settings' file was changed: what is in it counts from then on.
package struct ReloadSettingsRequest: ControlRequest {
    package typealias Answer = Nothing
    package static var verb: String { "settings-reload" }
    package init() {}
}
