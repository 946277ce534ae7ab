"""The table, and the goals that the project has set itself."""

import datetime
import os
import statistics
import subprocess

from peers import PEERS, PROGRAMS
from rows import FILE_BYTES, MEBIBYTE

VERSIONS = {"syncthing": ["syncthing", "--version"], "unison": ["unison", "-version"], "rclone": ["rclone", "--version"],
            "rsync": ["rsync", "--version"]}


def describe(folder, peers, tools, rounds, load, kernel):
    kind = first_line("stat", "-f", "-c", "%T", folder)
    lines = [f"{datetime.date.today()}, Linux {kernel}, {os.cpu_count()} processors (load {load:.2f} before), on {kind}, "
             f"medians of {rounds}"]
    for peer in peers:
        program = PROGRAMS.get(peer)
        version = first_line(*VERSIONS[program]) if program else first_line(tools.binary, "--version")
        lines.append(f"{peer}: {PEERS[peer].about} ({' '.join(version.split()[:4])})")
    return "\n".join(lines) + "\n"


def first_line(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return (done.stdout.splitlines() or ["?"])[0]


def table(results, sizes, rows, peers, goals):
    medians = {}
    for row, peer, kind, value in results:
        medians.setdefault((row, peer, kind), []).append(value)
    medians = {key: statistics.median(values) for key, values in medians.items()}
    head = ("row", "peer", "seconds", "× rsync", "A's link", "/changed", "B's link", "/changed", "CPU s", "memory")
    text = aligned([head], *([(row, peer, *cells(row, peer, medians, sizes)) for peer in peers] for row in rows))
    return text + "\n" + reached(medians) if goals else text


def cells(row, peer, medians, sizes):
    def figure(kind, of=peer):
        return medians.get((row, of, kind))
    seconds = figure("seconds")
    if seconds is None:
        return ("failed",) + ("",) * 7
    shown = f"{seconds:.3f}"
    if row == "propagate":
        shown += f"–{figure('seconds-p99'):.3f}"
        if figure("edits") < sizes.edits:
            shown += f" ({figure('edits'):.0f} edits)"
    if figure("failed"):
        shown += " (not always)"
    reference = figure("seconds", "rsync")
    changed = changed_bytes(row, sizes)
    links = []
    for kind in "link-a-bytes", "link-b-bytes":
        links += [in_bytes(figure(kind)), f"{figure(kind) / changed:.2f}" if changed else ""]
    ratio = f"{seconds / reference:.2f}" if reference else ""
    return (shown, ratio, *links, f"{figure('cpu-seconds'):.3f}", in_bytes(figure("peak-bytes")))


def changed_bytes(row, sizes):
    """What a perfect transfer would have to send of contents; None where the names alone change, and for a single byte."""
    return {"propagate": FILE_BYTES, "many": sizes.many * FILE_BYTES, "big": sizes.big, "append": MEBIBYTE}.get(row)


def in_bytes(value):
    for unit, name in (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"):
        if value >= unit:
            return f"{value / unit:.2f} {name}"
    return f"{value:.0f} B"


def aligned(*groups):
    """Lines of cells under each other, words to the left, figures to the right; an empty line between groups."""
    lines = [line for group in groups for line in group]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("".join(aligned_line(line, widths) for line in group) for group in groups)


def aligned_line(line, widths):
    cells = (cell.ljust(width) if column < 2 else cell.rjust(width) for column, (cell, width) in enumerate(zip(line, widths)))
    return "  ".join(cells).rstrip() + "\n"


def reached(medians):
    """What was promised for ubiquity as it comes, and whether it was kept. A link's bytes are those of the fuller one."""
    def of(row, kind, peer="ubiquity"):
        return medians.get((row, peer, kind))

    def times_rsync(row):
        own, other = of(row, "seconds"), of(row, "seconds", "rsync")
        return own / other if own and other else None

    def link(row):
        return max((of(row, kind) for kind in ("link-a-bytes", "link-b-bytes") if of(row, kind) is not None), default=None)

    goals = [
        ("propagate, median", of("propagate", "seconds"), 0.015, "s"), ("propagate, 99 of 100", of("propagate", "seconds-p99"), 0.05, "s"),
        ("many, times rsync", times_rsync("many"), 4, ""), ("big, times rsync", times_rsync("big"), 2, ""),
        ("insert, times rsync", times_rsync("insert"), 1.2, ""), ("insert, a link", link("insert"), MEBIBYTE / 2, "B"),
        ("append, times rsync", times_rsync("append"), 1, ""), ("append, a link", link("append"), 1.5 * MEBIBYTE, "B"),
        ("rename", of("rename", "seconds"), 0.1, "s"), ("rename, a link", link("rename"), 4096, "B"),
        ("import", of("import", "seconds"), 10, "s"),
    ]
    def show(value, unit):
        return in_bytes(value) if unit == "B" else f"{value:.3f} {unit}".strip()
    lines = [(name, "kept" if value <= most else "missed", show(value, unit), show(most, unit))
             for name, value, most, unit in goals if value is not None]
    return aligned([("goal of ubiquity", "", "is", "at most")], lines) if lines else ""
