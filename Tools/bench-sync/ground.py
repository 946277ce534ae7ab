"""Where the peers run: the devices A and B and a server S, each in a network namespace of its own, joined by a bridge in that of S.

So what A's and B's links carry is counted by the kernel, and nobody else's packets are among it. A peer's processes are in a control
group: it knows the processor time also of those that have ended, and it ends all of them, whatever they have become. The namespaces have
no names and go with the process that holds each, so that nothing stays behind.
"""

import os
import shutil
import subprocess
import tempfile
import threading
import time

# From which size on, as a power of two of pages, a virtual machine tells its host of free memory.
REPORTING = "/sys/module/page_reporting/parameters/page_reporting_order"
ADDRESSES = {"A": "10.99.0.1", "B": "10.99.0.2", "S": "10.99.0.3"}


class Failed(Exception):
    """What a person shall read about a measurement that did not come about."""


class Ground:
    """One folder with all state, the namespaces and the control groups. Made once; `close` takes everything away."""

    def __init__(self, on):
        self.holders, self.group, self.folder, self.reporting = {}, None, None, None
        try:
            self.folder = tempfile.mkdtemp(prefix="ubiquity-bench.", dir=on)
            if on is None:
                command("mount", "-t", "tmpfs", "-o", "size=80%,mode=755", "ubiquity-bench", self.folder)
            self.group = tempfile.mkdtemp(prefix="ubiquity-bench.", dir=cgroup_root())
            self._keep_memory()
            self._make_network()
        except BaseException:
            self.close()
            raise

    def _keep_memory(self):
        """What is free stays with a virtual machine meanwhile. Else its host takes it back within seconds, and to get it again takes longer
        than what is measured here."""
        try:
            with open(REPORTING) as file:
                before = file.read().strip()
            with open(REPORTING, "w") as file:
                file.write("11")  # Larger than any block that there is.
            self.reporting = before
        except OSError:
            pass  # No virtual machine, or one that does not do so, or does not let itself be told.

    def _make_network(self):
        for node in ADDRESSES:
            holder = subprocess.Popen(
                ["unshare", "--net", "sh", "-c", "echo && exec sleep infinity"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
            self.holders[node] = holder
            if not holder.stdout.readline():
                raise Failed("network namespaces cannot be made here")
            # Without it the kernel's own chatter would be counted.
            self.inside(node, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 || true")
            self.inside(node, "ip", "link", "set", "lo", "up")
        self.inside("S", "ip", "link", "add", "bridge", "type", "bridge", "mcast_snooping", "0")
        self.inside("S", "ip", "address", "add", ADDRESSES["S"] + "/24", "dev", "bridge")
        self.inside("S", "ip", "link", "set", "bridge", "up")
        for node in "AB":
            port = "to-" + node
            self.inside("S", "ip", "link", "add", port, "type", "veth",
                        "peer", "name", "uplink", "netns", str(self.holders[node].pid))
            self.inside("S", "ip", "link", "set", port, "master", "bridge", "up")
            self.inside(node, "ip", "address", "add", ADDRESSES[node] + "/24", "dev", "uplink")
            self.inside(node, "ip", "link", "set", "uplink", "up")

    def namespace(self, node):
        return f"/proc/{self.holders[node].pid}/ns/net"

    def inside(self, node, *words):
        command("nsenter", "--net=" + self.namespace(node), "--", *words)

    def link_bytes(self, node):
        """What has passed a device's link so far, in both directions, with all headers, in bytes.

        The headers count once for each segment that the kernel hands over, which it cuts for the wire only when there is one."""
        with open(f"/proc/{self.holders[node].pid}/net/dev") as table:
            for line in table:
                name, _, figures = line.partition(":")
                if name.strip() == "uplink":
                    fields = figures.split()
                    return int(fields[0]) + int(fields[8])
        raise Failed(f"{node} has no link")

    def close(self):
        """Ends every process first: their death frees whoever waits on their mounts."""
        if self.group:
            for group in (*subfolders(self.group), self.group):
                end_group(group)
        for holder in self.holders.values():
            holder.kill()
            holder.wait()
        if self.folder:
            unmount_below(self.folder)
            shutil.rmtree(self.folder, ignore_errors=True)
        if self.reporting:
            with open(REPORTING, "w") as file:
                file.write(self.reporting)


class Site:
    """The processes and the folder of one peer, from its start to its end."""

    def __init__(self, ground, name):
        self.ground = ground
        self.folder = os.path.join(ground.folder, name)
        self.group = os.path.join(ground.group, name)
        os.mkdir(self.folder)
        os.mkdir(self.group)
        self._peak_bytes = 0
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch_memory, daemon=True)
        self._watcher.start()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def spawn(self, node, *words, log="log", **environment):
        """Starts a program on a node; its output goes to a file in the site's folder."""
        # `echo` is the shell itself, and 0 is whoever writes: so the group holds the program before it starts.
        enter = ["sh", "-c", 'echo 0 >"$1" && shift && exec nsenter "$@"', "enter", self.group + "/cgroup.procs",
                 "--net=" + self.ground.namespace(node), "--", *words]
        with open(self.path(log), "ab") as output:
            return subprocess.Popen(enter, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                                    cwd=self.folder, env={**os.environ, "HOME": self.folder, **environment})

    def run(self, node, *words, **environment):
        """Runs a program to its end and gives what it printed."""
        # A file takes that: a pipe would stay open in what it leaves running.
        output = self.path("output")
        if os.path.exists(output):
            os.unlink(output)
        status = self.spawn(node, *words, log="output", **environment).wait()
        with open(output, errors="replace") as file:
            text = file.read()
        if status != 0:
            last = (text.strip().splitlines() or ["no word"])[-1]
            raise Failed(f"{os.path.basename(words[0])} ended with {status}: {last[-200:]}")
        return text

    def cpu_seconds(self):
        with open(self.group + "/cpu.stat") as file:
            for line in file:
                if line.startswith("usage_usec "):
                    return int(line.split()[1]) / 1e6
        raise Failed("the control group does not count processor time")

    def peak_bytes(self):
        """The highest sum of the resident memory that the processes alive together had needed, since `forget_peak`."""
        self._look_at_memory()
        return self._peak_bytes

    def forget_peak(self):
        for process in self._processes():
            try:
                with open(f"/proc/{process}/clear_refs", "w") as file:
                    file.write("5")
            except OSError:
                pass  # It has just ended.
        self._peak_bytes = 0

    def rest(self, limit=5.0):
        """Waits until the peer has nothing left to do in the background; those that ask again and again never rest."""
        deadline = time.monotonic() + limit
        quiet, before = 0, self.cpu_seconds()
        while quiet < 2 and time.monotonic() < deadline:
            time.sleep(0.2)
            now = self.cpu_seconds()
            quiet, before = (quiet + 1 if now - before < 0.01 else 0), now

    def close(self):
        self._ended.set()
        self._watcher.join()
        end_group(self.group)
        unmount_below(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _processes(self):
        try:
            with open(self.group + "/cgroup.procs") as file:
                return file.read().split()
        except OSError:
            return []

    def _watch_memory(self):
        while not self._ended.wait(0.05):
            self._look_at_memory()

    def _look_at_memory(self):
        # The high-water mark of each misses nothing between two looks, unlike its size at the moment.
        self._peak_bytes = max(self._peak_bytes, sum(high_water(process) for process in self._processes()))


def high_water(process):
    try:
        with open(f"/proc/{process}/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass  # It has just ended.
    return 0


def command(*words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(words)}: {done.stderr.strip()[-500:] or done.returncode}")


def cgroup_root():
    """The root of the second version's tree, which older systems mount beside the first's."""
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            _, point, kind = line.split()[:3]
            if kind == "cgroup2" and os.access(point, os.W_OK):
                return point
    raise Failed("there is no tree of control groups (cgroup2) that may be written")


def subfolders(folder):
    return [entry.path for entry in os.scandir(folder) if entry.is_dir()]


def end_group(group):
    try:
        with open(group + "/cgroup.kill", "w") as file:
            file.write("1")
    except OSError:
        pass  # It is gone already.
    for _ in range(500):
        try:
            os.rmdir(group)
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)  # Until the last process is gone.


def unmount_below(folder):
    with open("/proc/self/mountinfo") as table:
        points = [line.split()[4] for line in table]
    for point in sorted(points, reverse=True):
        if point == folder or point.startswith(folder + "/"):
            subprocess.run(["umount", "-l", point], stderr=subprocess.DEVNULL)
