import Replica
import SystemPackage
import UbiquityModel

extension Filesystem {
    /// EEXIST where a program would give a folder of a case-insensitive container a name that differs in case only from another one there,
    /// or in the cloud (semantics section 3). The kernel holds the folder's lock until the request is answered.
    /// - Parameter leaving: a name of the folder that goes when this one comes.
    func requireNoTwin(_ request: Request, of name: Name, in folder: Node, leaving: Name? = nil) throws(Errno) {
        guard let foldedNames, applier.acting(request.thread) == nil else { return }
        let descriptor = try descriptor(of: folder)
        // First: what comes from there to the disk after this look is noted before the next one.
        let inCloud = try host.cloudName(like: name.folded, in: folder.key)
        let twin = try makingRoom { () throws(Errno) in
            try foldedNames.twin(of: name, in: folder.key, descriptor, leaving: leaving)
        }
        if twin != nil { throw .fileExists }
        // A name that is there already is no new one.
        if let inCloud, inCloud != name, inCloud != leaving, try !FoldedNames.exists(name, in: descriptor) {
            throw .fileExists
        }
        // Not only when it is done: that can fail half-way, after the name is there. One that never comes does no harm.
        foldedNames.came(name, in: folder.key)
    }
}
