package import UbiquityModel

/// What the engine asks of the broker. The engine's claims yield: it never makes a program wait for more than one exchange.
package protocol EngineClaims: Sendable {
    /// No explicit write claim of a program covers the item at this moment.
    func engineMay(read path: ItemPath) -> Bool
    /// No explicit claim of a program covers the item at this moment.
    func engineMay(write path: ItemPath) -> Bool
    /// Returns when asking again is worth it.
    func whenFree(_ path: ItemPath) async
    /// Held during one exchange only; `nil` while a program holds a conflicting claim.
    func begin(engineWrite path: ItemPath) -> ClaimToken?
    func end(_ token: ClaimToken)
}

package struct ClaimToken: Hashable, Sendable {
    package let number: UInt64
    package init(number: UInt64) { self.number = number }
}
