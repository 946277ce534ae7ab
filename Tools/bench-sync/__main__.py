"""Compares how devices are kept equal: this project, and what Debian has for it. Tools/bench sync starts it; see its --help."""

import argparse
import os
import platform
import shutil
import signal
import sys
import time

from ground import Failed, Ground, Site, command
from peers import PEERS, PROGRAMS
from report import describe, table
from rows import EDITS, ROWS, Edits, Sizes, Sources, importing, listing

HELP = """
Two devices, each with its own link, and between them what a peer needs. Prints for each row: seconds (of propagate the median and the
99th of 100), as a multiple of rsync's; the bytes on A's and on B's link, and over the bytes changed; processor seconds and memory of all
of the peer's processes (the highest sum of what those alive together had ever needed). Wants root; best on a quiet machine.

rows, in one life of a peer:
  propagate  a file of 4 KiB that B holds is written anew: from close on A to the right content on B; figures per edit
  many       10,000 files of 4 KiB: from the start of cp on A until all are right on B
  rename     their folder gets another name
  big        a file of 1 GiB: from its close
  insert     it is written anew with one byte more at its start: from its close
  append     1 MiB at its end
and in lives of their own:
  listing    B joins 1,000,000 items: until find shows all names (empty files where no server can be filled)
  import     B joins and holds the same 100,000 files already
"""


class Tools:
    """The programs of this project, built if none were given. The working folder is the repository."""

    def __init__(self, options):
        self.binary = self.cloud_fill = None
        if not any(peer.startswith("ubiquity") for peer in options.peers):
            return
        if not options.binary:
            command("Tools/setup")
            command("Tools/build")
        self.binary = os.path.abspath(options.binary or ".build/release/ubiquity")
        if "listing" in options.only:
            if not options.cloud_fill:
                command("swift", "build", "--quiet", "--configuration", "release", "--static-swift-stdlib", "--product", "cloud-fill")
            self.cloud_fill = os.path.abspath(options.cloud_fill or ".build/release/cloud-fill")


def arguments():
    parser = argparse.ArgumentParser(prog="Tools/bench sync", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("--peers", type=names_among(PEERS, "peer"), metavar="NAME,…", help="only these: " + ", ".join(PEERS))
    parser.add_argument("--only", type=names_among(ROWS, "row"), metavar="ROW,…",
                        help="only these rows; what they need is done all the same")
    parser.add_argument("--rounds", type=positive, metavar="N", help="how often all is measured (default 3, with --quick 1)")
    parser.add_argument("--quick", action="store_true", help="less of everything: 1,000 files, 64 MiB, 20,000 items, 5,000 files")
    parser.add_argument("--limit", type=positive, metavar="SECONDS", help="what takes longer has failed (default 600, with --quick 120)")
    parser.add_argument("--on", metavar="DIR", help="a folder of its own in DIR takes all files (default: a tmpfs)")
    parser.add_argument("--results", metavar="FILE", help="also append every figure to FILE: ROW PEER KIND VALUE")
    parser.add_argument("--binary", metavar="PATH", help="this ubiquity instead of the one that Tools/build makes")
    parser.add_argument("--cloud-fill", metavar="PATH", help="the program that fills its server, instead of the one here")
    options = parser.parse_args()
    options.peers = options.peers or list(PEERS)
    options.only = options.only or ROWS
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.limit = options.limit or (120 if options.quick else 600)
    return options


def names_among(known, what):
    def names(text):
        for name in text.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no {what} {name}; there are: {', '.join(known)}")
        return [name for name in known if name in text.split(",")]
    return names


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is no number above 0")
    return int(text)


class Run:
    def __init__(self, options, tools, ground):
        self.options, self.tools, self.ground = options, tools, ground
        self.sizes = Sizes(options.quick)
        self.sources = Sources(os.path.join(ground.folder, "sources"), self.sizes)
        self.peers = [peer for peer in options.peers if self._is_here(peer)]
        self.results = []

    def _is_here(self, peer):
        here = shutil.which(PROGRAMS.get(peer, "sh")) is not None
        if not here:
            say(f"{peer} is not here, and left out")
        return here

    def all(self):
        """All peers in turn, round by round, each time another one first, so that noise and order hit all alike."""
        count = len(self.peers)
        for number in range(self.options.rounds):
            for place in range(count):
                self._peer(self.peers[(number + place) % count])

    def _peer(self, name):
        wanted = [row for row in EDITS if row in self.options.only]
        if wanted:
            self._life(name, wanted, lambda peer: self._edits(name, peer, wanted))
        for row, measured in ("listing", listing), ("import", importing):
            if row in self.options.only:
                self._life(name, [row], lambda peer: self._record(
                    row, name, lambda: measured(peer, self.sources, self.sizes, self.options.limit)))

    def _life(self, name, rows, use):
        site = Site(self.ground, name)
        try:
            use(PEERS[name](site, self.tools))
        except (Failed, OSError) as failure:
            for row in rows:
                self._fail(row, name, failure)
        finally:
            site.close()

    def _edits(self, name, peer, wanted):
        edits = Edits(peer, self.sources, self.sizes, self.options.limit)
        needed = {EDITS[row] for row in wanted} | set(wanted)
        failed = set()
        for row in EDITS:
            if row not in needed:
                continue
            if EDITS[row] in failed:
                self._fail(row, name, f"{EDITS[row]} failed before it")
                failed.add(row)
            elif not self._record(row, name, lambda: edits.measure(row), kept=row in wanted):
                failed.add(row)

    def _record(self, row, peer, measure, kept=True):
        start = time.monotonic()
        try:
            figures = measure()
        except (Failed, OSError) as failure:
            self._fail(row, peer, failure)
            return False
        say(f"{row} on {peer}: {figures['seconds']:.4g} s (with its preparation {time.monotonic() - start:.0f} s)")
        if kept:
            self._keep(row, peer, figures)
        return True

    def _fail(self, row, peer, why):
        say(f"{row} on {peer} failed: {why}")
        self._keep(row, peer, {"failed": 1})

    def _keep(self, row, peer, figures):
        self.results += ((row, peer, kind, value) for kind, value in figures.items())
        if self.options.results:
            with open(self.options.results, "a") as file:
                file.writelines(f"{row} {peer} {kind} {value:.9g}\n" for kind, value in figures.items())


def say(text):
    print("bench: " + text, file=sys.stderr, flush=True)


def leave(number, _):
    # Once: what is cleared away then shall not be interrupted.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    sys.exit(128 + number)


def main():
    options = arguments()
    if os.geteuid() != 0:
        sys.exit("bench: sync wants root, for the devices' network links")
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, leave)
    ground = None
    try:
        tools = Tools(options)
        ground = Ground(options.on and os.path.realpath(options.on))
        run = Run(options, tools, ground)
        load = os.getloadavg()[0]
        run.all()
        print(describe(ground.folder, run.peers, run.tools, options.rounds, load, platform.release()))
        print(table(run.results, run.sizes, [row for row in ROWS if row in options.only], run.peers, goals=not options.quick))
    except Failed as failure:
        sys.exit(f"bench: {failure}")
    finally:
        if ground:
            ground.close()


main()
