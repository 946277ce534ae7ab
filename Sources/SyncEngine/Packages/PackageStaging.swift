import Glibc
import Replica
import SystemPackage
import UbiquityModel

/// Prepares packages that are to appear, in the staging folder. Blocks.
enum PackageStaging {
    /// With files of which the content is not here.
    static func stage(
        _ remote: RemoteItem,
        _ file: FileContent,
        in replica: Replica
    ) throws(Errno) -> (name: String, state: LocalState) {
        let index: PackageIndex?
        do throws(ReplicaError) {
            index = try file.content.flatMap { (content) throws(ReplicaError) in
                try replica.database.packageIndex(content, size: file.size)
            }
        } catch { throw .ioError }
        // Not known yet: whoever looks for it is told to try again.
        guard let index else { throw .resourceTemporarilyUnavailable }
        let builder = try PackageBuilder(
            index,
            revision: file.revision,
            attributes: remote.attributes,
            older: nil,
            in: replica.staging
        ) { _ in .dataless }
        do throws(Errno) { return try builder.finish() } catch {
            try? replica.staging.remove(builder.name)
            throw error
        }
    }
}
