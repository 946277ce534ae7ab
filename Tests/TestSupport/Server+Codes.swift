extension Server {
    /// Lets the time of every code be over, by changing the server's catalogue.
    package func expireCodes() throws {
        let statement = "UPDATE invitations SET expires = 1; SELECT changes();"
        let result = try succeed("sqlite3", "-cmd", ".timeout 5000", data + "/catalog.sqlite", statement)
        guard result.output != "0\n" else { throw TestFailure("the server has no codes") }
    }
}
