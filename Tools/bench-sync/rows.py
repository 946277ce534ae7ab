"""What is measured: a change on A, and the moment at which B is right.

B is looked at again and again, at first after a tenth of a millisecond and then at a hundredth of the time that has passed: that is how
fine the figures are. Contents are always compared, byte by byte.

A look gives the moment from which all was right as far as it can tell: its end. Only a single file that had its full size and all its
blocks before it was read was right then already, since no peer writes into a file that has both; without its blocks, reading may fetch it.
"""

import contextlib
import mmap
import os
import random
import signal
import time

from ground import Failed, command

MEBIBYTE = 1 << 20
FILE_BYTES = 4096
# The rows that share one life of a peer, in their order; what each needs before it.
EDITS = {"propagate": None, "many": None, "rename": "many", "big": None, "insert": "big", "append": "big"}
ROWS = [*EDITS, "listing", "import"]


class Sizes:
    def __init__(self, quick):
        self.edits, self.edits_seconds = (50, 15) if quick else (200, 40)
        self.many = 1_000 if quick else 10_000
        self.big = (64 if quick else 1024) * MEBIBYTE
        self.imported = 5_000 if quick else 100_000
        self.listed_folders, self.listed_files = (100, 200) if quick else (1000, 1000)


class Sources:
    """What is copied to the peers and compared with, made when it is first asked for."""

    def __init__(self, folder, sizes):
        self.folder, self.sizes = folder, sizes
        os.mkdir(folder)

    def tree(self, name, files):
        """Files of 4 KiB that no compression makes smaller, in folders of 100."""
        top = os.path.join(self.folder, name)
        if not os.path.exists(top):
            random_bytes = random.Random(name).randbytes
            for i in range(files):
                folder = os.path.join(top, f"folder-{i // 100:04}")
                if i % 100 == 0:
                    os.makedirs(folder)
                write(os.path.join(folder, f"file-{i:06}"), random_bytes(FILE_BYTES))
        return top

    def empty(self, folders, files):
        top = os.path.join(self.folder, "empty")
        if not os.path.exists(top):
            for i in range(folders):
                folder = os.path.join(top, f"folder-{i:06}")
                os.makedirs(folder)
                for j in range(files):
                    os.close(os.open(os.path.join(folder, f"file-{j:06}"), os.O_CREAT | os.O_WRONLY, 0o644))
        return top

    def big(self):
        path = os.path.join(self.folder, "big")
        if not os.path.exists(path):
            with open(path, "wb") as file:
                for _ in range(self.sizes.big // MEBIBYTE):
                    file.write(os.urandom(MEBIBYTE))
        return path


class Meter:
    """Counts from its beginning until the peer rests again: bytes on each link, processor time, memory."""

    def __init__(self, peer, new_bytes=0):
        """`new_bytes`: about what all large files that come into being need of memory."""
        self.peer, self.site, self.new_bytes = peer, peer.site, new_bytes + 512 * MEBIBYTE

    def __enter__(self):
        self.site.rest()
        touch_memory(self.new_bytes)
        self.site.forget_peak()
        self._before = self._counters()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.site.rest(2.0)
            a, b, cpu = (after - before for after, before in zip(self._counters(), self._before))
            self.figures = {"link-a-bytes": a, "link-b-bytes": b, "cpu-seconds": cpu, "peak-bytes": self.site.peak_bytes()}

    def _counters(self):
        ground = self.site.ground
        return ground.link_bytes("A"), ground.link_bytes("B"), self.site.cpu_seconds()


class Edits:
    """One life of a peer, with the rows in which something changes while both devices run."""

    def __init__(self, peer, sources, sizes, limit):
        self.peer, self.sources, self.sizes, self.limit = peer, sources, sizes, limit
        with overdue_after(limit):
            peer.start_a()
            peer.start_b()
            peer.joined()

    def measure(self, row):
        """The figures of a row, by their names. Raises `Failed`."""
        return getattr(self, row)()

    def propagate(self):
        """A file of 4 KiB that B holds is written anew: from its closing on A to the right content through B's folder."""
        name, rng = "small", random.Random(1)
        texts = {f"file-{i:04}": rng.randbytes(FILE_BYTES) for i in range(self.sizes.edits)}
        os.mkdir(os.path.join(self.peer.a, name))
        for file, text in texts.items():
            write(self._on_a(name, file), text)
        self._settle(lambda: now_if(all(is_file(self._on_b(name, file), text) for file, text in texts.items())))
        seconds, end = [], time.monotonic() + self.sizes.edits_seconds
        with Meter(self.peer) as meter:
            for file in texts:
                # Of another length too, since some peers take an equal one written in the same second for the same.
                text = rng.randbytes(FILE_BYTES + 1)
                seconds.append(self._seconds(lambda: write(self._on_a(name, file), text), AppearingFile(self._on_b(name, file), text)))
                if time.monotonic() > end:
                    break
                # For as long as the slowest took, so that who looks at intervals is met at any time within one.
                time.sleep(rng.uniform(0.02, 0.02 + max(0.06, *seconds)))
        each = {kind: value / len(seconds) if kind != "peak-bytes" else value for kind, value in meter.figures.items()}
        return {"seconds": percentile(seconds, 50), "seconds-p99": percentile(seconds, 99), "edits": len(seconds), **each}

    def many(self):
        """A tree of small files: from the start of `cp` on A until all are right on B."""
        source = self.sources.tree("many", self.sizes.many)

        def change():
            start = time.monotonic()
            command("cp", "-r", source, self._on_a("many"))
            return start
        return self._figures(change, AppearingTree(source, self._on_b("many")))

    def rename(self):
        """The folder of the row before gets another name: until B shows all names there, and none at the old place."""
        source = self.sources.tree("many", self.sizes.many)

        def change():
            start = time.monotonic()
            os.rename(self._on_a("many"), self._on_a("renamed"))
            return start

        def moved():
            # Not a folder is listed as long as there is nothing to see. Empty ones may stay: some peers look at files only.
            if not os.path.lexists(self._on_b("renamed")):
                return None
            return now_if(count_files(self._on_b("many")) <= 0 and count_files(self._on_b("renamed")) == self.sizes.many)
        figures = self._figures(change, moved)
        self._settle(AppearingTree(source, self._on_b("renamed")))
        return figures

    def big(self):
        """One large file: from its closing on A."""
        source = self.sources.big()
        return self._figures(lambda: rewrite(self._on_a("big"), source), AppearingFile(self._on_b("big"), source=source), 3 * self.sizes.big)

    def insert(self):
        """It is written anew with a byte more at its start: from its closing."""
        source = self.sources.big()
        return self._figures(lambda: rewrite(self._on_a("big"), source, b"!"), AppearingFile(self._on_b("big"), b"!", source), 3 * self.sizes.big)

    def append(self):
        """1 MiB is written to its end: from its closing."""
        source, more = self.sources.big(), random.Random(2).randbytes(MEBIBYTE)
        with mapped(self._on_a("big")) as content:
            first = content[:1] if len(content) > self.sizes.big else b""

        def change():
            with open(self._on_a("big"), "ab") as file:
                file.write(more)
            return time.monotonic()
        return self._figures(change, AppearingFile(self._on_b("big"), first, source, more), 3 * self.sizes.big)

    def _on_a(self, *names):
        return os.path.join(self.peer.a, *names)

    def _on_b(self, *names):
        return os.path.join(self.peer.b, *names)

    def _figures(self, change, look, new_bytes=0):
        with Meter(self.peer, new_bytes) as meter:
            seconds = self._seconds(change, look)
        return {"seconds": seconds, **meter.figures}

    def _seconds(self, change, look):
        """Makes a change, which gives the moment from which time counts, and waits until B is right."""
        with overdue_after(self.limit):
            start = change()
            if self.peer.push:
                self.peer.push()
                end = time.monotonic()
                if look() is None:
                    raise Failed("B is not right after the transfer")
                return end - start
            return until(look) - start

    def _settle(self, look):
        with overdue_after(self.limit):
            if self.peer.push:
                self.peer.push()
            until(look)


def listing(peer, sources, sizes, limit):
    """B joins when A, or the server, holds many items: until `find` shows all names. The items of those without a server are empty."""
    folders, files = sizes.listed_folders, sizes.listed_files
    # What is prepared takes longer than what is measured.
    with overdue_after(limit * 3):
        later = peer.fill(folders, files, None if hasattr(peer, "fill_server") else sources.empty(folders, files))
        peer.start_a()
        if later:
            peer.fill_server(folders, files)
    with Meter(peer) as meter, overdue_after(limit):
        start = time.monotonic()
        peer.start_b()
        seconds = until(lambda: now_if(count_files(peer.b, "folder-") == folders * files)) - start
    return {"seconds": seconds, **meter.figures}


def importing(peer, sources, sizes, limit):
    """B joins with the same files that A has: until they agree, and nothing has been made twice."""
    source = sources.tree("imported", sizes.imported)
    with overdue_after(limit * 3):
        for folder in (peer.a, peer.b):
            command("cp", "-a", source, folder + "/imported")
        peer.start_a(importing=True)
    with Meter(peer) as meter, overdue_after(limit):
        start = time.monotonic()
        peer.start_b(importing=True)
        peer.joined()
        seconds = time.monotonic() - start
    with overdue_after(limit):
        for folder in (peer.a, peer.b):
            if count_files(folder + "/imported") != sizes.imported or AppearingTree(source, folder + "/imported")() is None:
                raise Failed("the files are not what they were")
    return {"seconds": seconds, **meter.figures}


class AppearingFile:
    """Looks whether a file has the bytes that it shall have: `before`, those of the source, `after`."""

    def __init__(self, path, before=b"", source=None, after=b""):
        self.path, self.before, self.source, self.after = path, before, source, after
        self.length = len(before) + (os.path.getsize(source) if source else 0) + len(after)
        self._seen, self._next_reading = None, 0.0

    def __call__(self):
        # The kernel answers `stat` from memory, so that looking does not disturb whom it looks at. What was wrong is read again when that
        # has changed, and now and then, should the kernel not have been told.
        try:
            found = os.stat(self.path)
            state = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            start = time.monotonic()
            if found.st_size != self.length or (state == self._seen and start < self._next_reading):
                return None
            if self._is_right():
                return start if found.st_blocks * 512 >= self.length else time.monotonic()
        except OSError:
            return None
        end = time.monotonic()
        self._seen, self._next_reading = state, end + max(0.02, 10 * (end - start))
        return None

    def _is_right(self):
        with open(self.path, "rb", buffering=0) as file:
            if read_fully(file, len(self.before)) != self.before:
                return False
            if self.source:
                with mapped(self.source) as source:
                    for offset in range(0, len(source), MEBIBYTE):
                        part = source[offset:offset + MEBIBYTE]
                        if read_fully(file, len(part)) != part:
                            return False
            return read_fully(file, len(self.after)) == self.after and file.read(1) == b""


class AppearingTree:
    """Looks whether all files of a tree are there with the contents of its source; only at those that were not right before.

    It asks for one missing name of each folder, and looks at all of them when that one is there: to list everything each time would be more
    work for whom it looks at."""

    def __init__(self, source, target):
        self.target = target
        self._missing = {entry.name: self._contents(entry.path) for entry in os.scandir(source)}

    @staticmethod
    def _contents(folder):
        contents = {}
        for entry in os.scandir(folder):
            with open(entry.path, "rb") as file:
                contents[entry.name] = file.read()
        return contents

    def __call__(self):
        for folder, missing in list(self._missing.items()):
            path = os.path.join(self.target, folder)
            if not os.path.lexists(os.path.join(path, max(missing))):
                continue
            for name in [name for name, content in missing.items() if is_file(os.path.join(path, name), content)]:
                del missing[name]
            if not missing:
                del self._missing[folder]
        return now_if(not self._missing)


def touch_memory(count):
    """Has free memory that a virtual machine's host has given already.

    The host takes back what is free, and gives it again when it is touched. On some that takes several times as long as the whole
    transfer, and whether a peer meets it depends on what the one before it has left free."""
    mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()


def now_if(right):
    return time.monotonic() if right else None


def until(look):
    """Looks again and again; the moment from which B was right."""
    start = time.monotonic()
    while True:
        right_since = look()
        if right_since is not None:
            return right_since
        time.sleep(min(0.05, max(0.0001, (time.monotonic() - start) / 100)))


@contextlib.contextmanager
def overdue_after(seconds):
    """Interrupts what takes longer, also within a system call."""
    def interrupt(*_):
        raise Failed(f"over {seconds} s")
    former = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


@contextlib.contextmanager
def mapped(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        yield content


def write(path, text):
    """Writes a file in one piece, and gives the moment at which it was closed."""
    with open(path, "wb", buffering=0) as file:
        file.write(text)
    return time.monotonic()


def rewrite(path, source, before=b""):
    with mapped(source) as content, open(path, "wb", buffering=0) as file:
        file.write(before)
        for offset in range(0, len(content), MEBIBYTE):
            file.write(content[offset:offset + MEBIBYTE])
    return time.monotonic()


def read_fully(file, length):
    text = b""
    while len(text) < length:
        more = file.read(length - len(text))
        if not more:
            break
        text += more
    return text


def is_file(path, text):
    try:
        with open(path, "rb", buffering=0) as file:
            return read_fully(file, len(text) + 1) == text
    except OSError:
        return False


def count_files(top, prefix=""):
    """How many files the folders of a folder have, by their names alone, as `find` would tell."""
    try:
        return sum(len(os.listdir(entry.path)) for entry in os.scandir(top) if entry.name.startswith(prefix))
    except OSError:
        return -1


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
