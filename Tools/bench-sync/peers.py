"""The peers. Each keeps its folders `a` and `b` equal, in its own way; `a` and `b` are where programs read and write.

`start_a` makes A ready with what is in `a`, and whoever stands between; it returns when A needs no more time for itself. `start_b` lets B
join, and `joined` waits until B and A agree. A peer with `push` does nothing by itself: that is called after each change.
"""

import http.client
import json
import os
import re
import socket
import time

from ground import ADDRESSES, Failed, command


class Peer:
    push = None

    def __init__(self, site, tools):
        self.site, self.tools = site, tools
        self.a, self.b = site.path("a"), site.path("b")
        os.mkdir(self.a)
        os.mkdir(self.b)

    def start_a(self, importing=False):
        pass

    def start_b(self, importing=False):
        pass

    def joined(self):
        pass

    def fill(self, folders, files, source):
        """Puts the items of the first listing into A, from an equal folder, before `start_a`. True if there is a quicker way after it."""
        command("cp", "-a", source + "/.", self.a)
        return False


class Ubiquity(Peer):
    """A server in a namespace of its own, with TLS as on every network."""

    about = "B fetches what is read"
    port = 24873

    def device(self, node, *words):
        return self.site.run(node, self.tools.binary, *words, UBIQUITY_HOME=self.site.path("home-" + node))

    def start_a(self, importing=False):
        data = self.site.path("server")
        self.site.spawn("S", self.tools.binary, "serve", "--data", data, "--listen", f"{ADDRESSES['S']}:{self.port}", log="server.log")
        wait_for("its server", lambda: "listening on" in text_of(self.site.path("server.log")))
        words = json.loads(self.site.run("S", self.tools.binary, "account", "add", "bench", "--data", data, "--json"))
        self.device("A", "join", words["url"], words["code"], self.a, *(["--import"] if importing else []))
        if importing:
            self.device("A", "sync")

    def start_b(self, importing=False):
        url, code = self.invitation()
        self.device("B", "join", url, code, self.b, *(["--import"] if importing else []))

    def joined(self):
        self.device("B", "sync")

    def fill(self, folders, files, source):
        return True

    def fill_server(self, folders, files):
        self.device("A", "offline", "on")
        url, code = self.invitation()
        self.site.run("S", self.tools.cloud_fill, url, code, "--folders", str(folders), "--files", str(files))

    def invitation(self):
        found = re.search(r"ubiquity join (\S+) (\S+)", self.device("A", "invite", "--address", ADDRESSES["S"]))
        if not found:
            raise Failed("ubiquity invites nobody")
        return found.groups()


class UbiquityPinned(Ubiquity):
    about = "B keeps everything, as the others do"

    def start_b(self, importing=False):
        super().start_b(importing)
        self.device("B", "pin", self.b)


class Syncthing(Peer):
    about = "as it comes: what the watcher sees waits 10 s"
    delay, low_priority = "10", "true"

    def start_a(self, importing=False):
        self.devices = {node: self._identity(node) for node in "AB"}
        self._serve("A", self.a)
        self._idle("A")

    def start_b(self, importing=False):
        self._serve("B", self.b)

    def joined(self):
        wait_for("syncthing's connection", lambda: any(
            c["connected"] for c in self._ask("B", "/rest/system/connections")["connections"].values()), limit=600)
        wait_for("syncthing's agreement", self._agrees, limit=600)

    def _agrees(self):
        states = [self._ask(node, "/rest/db/status?folder=bench") for node in "AB"]
        return all(s["state"] == "idle" and s["needTotalItems"] == 0 for s in states) and \
            states[0]["globalFiles"] == states[1]["globalFiles"] and states[0]["localFiles"] == states[1]["localFiles"]

    def _identity(self, node):
        home = self.site.path("home-" + node)
        self.site.run(node, "syncthing", "generate", "--home", home, "--no-default-folder", "--skip-port-probing")
        return self.site.run(node, "syncthing", "--home", home, "--device-id").split()[-1]

    def _serve(self, node, folder):
        home = self.site.path("home-" + node)
        other = "B" if node == "A" else "A"
        with open(home + "/config.xml", "w") as file:
            file.write(f"""<configuration version="36">
    <folder id="bench" path="{folder}" type="sendreceive" rescanIntervalS="3600" fsWatcherEnabled="true" fsWatcherDelayS="{self.delay}">
        <device id="{self.devices[node]}"></device>
        <device id="{self.devices[other]}"></device>
    </folder>
    <device id="{self.devices[node]}" name="{node}"><address>dynamic</address></device>
    <device id="{self.devices[other]}" name="{other}"><address>tcp://{ADDRESSES[other]}:22000</address></device>
    <gui enabled="true" tls="false"><address>{self._socket(node)}</address><apikey>bench</apikey></gui>
    <options>
        <listenAddress>tcp://{ADDRESSES[node]}:22000</listenAddress>
        <globalAnnounceEnabled>false</globalAnnounceEnabled>
        <localAnnounceEnabled>false</localAnnounceEnabled>
        <relaysEnabled>false</relaysEnabled>
        <natEnabled>false</natEnabled>
        <startBrowser>false</startBrowser>
        <urAccepted>-1</urAccepted>
        <crashReportingEnabled>false</crashReportingEnabled>
        <reconnectionIntervalS>1</reconnectionIntervalS>
        <setLowPriority>{self.low_priority}</setLowPriority>
    </options>
</configuration>
""")
        self.site.spawn(node, "syncthing", "serve", "--home", home, "--no-browser", "--no-restart", "--no-upgrade",
                        log=f"syncthing-{node}.log")
        self._idle(node)

    def _idle(self, node):
        wait_for("syncthing's scan", lambda: self._ask(node, "/rest/db/status?folder=bench")["state"] == "idle", limit=600)

    def _socket(self, node):
        return self.site.path(f"gui-{node}")

    def _ask(self, node, path):
        connection = SocketConnection(self._socket(node))
        try:
            connection.request("GET", path, headers={"X-API-Key": "bench"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise ConnectionError(f"syncthing answers {answer.status}")
            return json.loads(answer.read())
        finally:
            connection.close()


class SyncthingQuick(Syncthing):
    about = "its watcher waits 1 s, the least it takes; at ordinary priority"
    delay, low_priority = "1", "false"


class Unison(Peer):
    about = "-repeat 1: it looks again after each second, since Debian's package brings no watcher"

    def start_b(self, importing=False):
        self.site.spawn("B", "unison", "-socket", "5000", "-listen", ADDRESSES["B"], log="unison-B.log",
                        UNISON=self.site.path("home-B"))
        self._words = ["unison", self.a, f"socket://{ADDRESSES['B']}:5000/{self.b}", "-batch", "-auto", "-times", "-dumbtty",
                       "-confirmbigdel=false"]
        wait_for("unison's listener", self._first_pass)
        if not importing:
            self.site.spawn("A", *self._words, "-repeat", "1", log="unison-A.log", UNISON=self.site.path("home-A"))

    def _first_pass(self):
        try:
            self.site.run("A", *self._words, UNISON=self.site.path("home-A"))
            return True
        except Failed as failure:
            if "Can't connect" not in str(failure) and "refused" not in str(failure):
                raise
            return False


class Rclone(Peer):
    about = "bisync to its own sftp server, again as soon as it is done"

    def start_b(self, importing=False):
        self.site.spawn("B", "rclone", "serve", "sftp", "--addr", f"{ADDRESSES['B']}:2022", "--user", "bench", "--pass", "bench", self.b,
                        log="rclone-B.log")
        wait_for("rclone's server", lambda: "listening" in text_of(self.site.path("rclone-B.log")))
        secret = self.site.run("A", "rclone", "obscure", "bench").strip()
        with open(self.site.path("rclone.conf"), "w") as file:
            file.write(f"[bench]\ntype = sftp\nhost = {ADDRESSES['B']}\nport = 2022\nuser = bench\npass = {secret}\nshell_type = unix\n")
        words = ["rclone", "--config", self.site.path("rclone.conf"), "bisync", self.a, "bench:", "--workdir", self.site.path("work"),
                 "--force", "--remove-empty-dirs"]
        self.site.run("A", *words, "--resync")
        if not importing:
            # It gives up after an error, also one that only a file under its eyes caused, until it is started anew.
            self.site.spawn("A", "sh", "-c", 'while :; do "$@" || "$@" --resync || sleep 0.1; done', "loop", *words, log="rclone-A.log")


class Rsync(Peer):
    about = "-a --delete to a daemon: the transfer alone, started by hand"

    def start_b(self, importing=False):
        with open(self.site.path("rsyncd.conf"), "w") as file:
            file.write(f"use chroot = no\nreverse lookup = no\nuid = 0\ngid = 0\n[b]\npath = {self.b}\nread only = no\n")
        self.site.spawn("B", "rsync", "--daemon", "--no-detach", "--config", self.site.path("rsyncd.conf"), "--address", ADDRESSES["B"],
                        log="rsyncd.log")
        wait_for("rsync's daemon", self._answers)
        self.push()

    def _answers(self):
        try:
            return bool(self.site.run("A", "rsync", f"rsync://{ADDRESSES['B']}/"))
        except Failed:
            return False

    def push(self):
        self.site.run("A", "rsync", "-a", "--delete", self.a + "/", f"rsync://{ADDRESSES['B']}/b/")


PEERS = {
    "ubiquity": Ubiquity, "ubiquity-pinned": UbiquityPinned, "syncthing": Syncthing, "syncthing-quick": SyncthingQuick,
    "unison": Unison, "rclone": Rclone, "rsync": Rsync,
}
PROGRAMS = {"syncthing": "syncthing", "syncthing-quick": "syncthing", "unison": "unison", "rclone": "rclone", "rsync": "rsync"}


class SocketConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def wait_for(what, is_there, limit=30):
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        try:
            if is_there():
                return
        except (OSError, http.client.HTTPException, KeyError):
            pass  # Its socket is not there yet, or it says what it does not know yet.
        time.sleep(0.02)
    raise Failed(f"{what} did not come about within {limit} s")


def text_of(path):
    with open(path, errors="replace") as file:
        return file.read()
