"""The charts of PERF.md: rate, latency and memory, from the raw lines in docs/perf.

usage: charts.py RAW_DIRECTORY PICTURE_DIRECTORY

The newest measurement of a file stands first in it, behind a comment that names its commit.
"""

import json
import re
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402: the backend comes first

OURS, OTHERS, LIMIT = "#2f6fdb", "#8c959f", "#b42318"
NAMES = {  # {}: the version that was measured
    "kith-inline": "kith, Inline", "kith-worker": "kith, Worker", "kith-blocking": "kith, Blocking",
    "kith-poll": "kith, loops that poll", "nats": "NATS {}", "grpc-stream": "gRPC {}, streams",
    "grpc-unary": "gRPC {}, unary", "hollywood": "hollywood {}", "protoactor": "Proto.Actor (Go)",
    "erlang": "Erlang/OTP {}", "erlang-sleep": "Erlang/OTP {}, no spinning", "pekko-remote": "Pekko {}, remote",
    "pekko-sharded": "Pekko {}, sharding",
}

plt.rcParams.update({
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "figure.facecolor": "white",
    "axes.facecolor": "white", "savefig.facecolor": "white", "svg.hashsalt": "kith",
    "figure.constrained_layout.use": True,
})


def newest(path, word):
    """The commit that the first comment of a file names, and the first run of lines of word as values."""
    commit, found = "", []
    with open(path, encoding="utf-8") as file:
        for line in file:
            named = re.search(r"commit ([0-9a-f]{7,})", line) if line.startswith("#") else None
            if found and not line.startswith(word + " "):
                break
            if named and not found:
                commit = named[1]
            if line.startswith(word + " "):
                found.append(json.loads(line[len(word):]))
    return commit, found


def label(row):
    version = re.match(r"v?(\d+(?:\.\d+)*)", row.get("version") or "")
    return NAMES[row["peer"]].format(version[1] if version else "").strip()


def bars(axes, rows, value, shown, unit, limit=None):
    """One bar a row, the best on top, its value beside it, and the limit as a line."""
    colours = [OURS if row["peer"].startswith("kith") else OTHERS for row in rows]
    values = [value(row) for row in rows]
    axes.barh(range(len(rows)), values, color=colours, height=0.7)
    axes.set_yticks(range(len(rows)), [label(row) for row in rows])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(unit)
    top = max(values + ([limit[0]] if limit else []))
    for n, number in enumerate(values):
        axes.text(number + top * 0.012, n, shown(number), va="center", ha="left", fontsize=9, zorder=3,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})
    axes.set_xlim(0, top * 1.16)
    if limit:
        axes.axvline(limit[0], color=LIMIT, linestyle="--", linewidth=1.4, label=limit[1])
        axes.legend(loc=limit[2], frameon=False, labelcolor=LIMIT)


def of(rows, work):
    """The rows of a work, and the figure of raw TCP in it."""
    mine = [row for row in rows if row["work"] == work]
    return [row for row in mine if row["peer"] != "raw"], next(row for row in mine if row["peer"] == "raw")


def save(figure, path, title):
    figure.savefig(path, metadata={"Date": None, "Creator": None, "Title": title})
    plt.close(figure)
    print(path)


def rate(commit, rows, path):
    figure, axes = plt.subplots(figsize=(8.6, 4.4))
    peers, raw = of(rows, "tell_64")
    most = raw["rate"] / 1e6
    bars(axes, sorted(peers, key=lambda row: -row["rate"]), lambda row: row["rate"] / 1e6, lambda n: f"{n:.2f}",
         "million messages a second, 64 bytes of payload, between two processes",
         (most, f"raw TCP {most:.2f}", "lower center"))
    axes.set_title(f"Messages one way (kith at {commit}): more is better", fontsize=11, loc="left")
    save(figure, path, "Messages a second by system")


def latency(commit, rows, path):
    figure, both = plt.subplots(2, 1, figsize=(8.6, 8.2))
    for axes, work, where in zip(both, ("ask_1_p1", "ask_1_p2"), ("both processes on one core", "a core for each")):
        peers, raw = of(rows, work)
        least = raw["p50_us"]
        bars(axes, sorted(peers, key=lambda row: row["p50_us"]), lambda row: row["p50_us"], lambda n: f"{n:.0f}",
             "microseconds there and back, median", (least, f"raw TCP {least:.0f}", "upper right"))
        axes.set_title(f"One ask at a time, {where} (kith at {commit}): less is better", fontsize=11, loc="left")
    save(figure, path, "Time of an ask by system")


def memory(commit, rows, idle, path):
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.9), width_ratios=(1, 1.2))
    at, modes = idle
    for n, mode in enumerate(modes):
        empty, full = mode["empty_rss_mb"], mode["rss_mb"]
        left.bar(n, full, color=OURS, width=0.6)
        left.bar(n, empty, color="#163d80", width=0.6)
        left.text(n, full + 3, f"{full:.0f}", ha="center", fontsize=9)
    left.text(0, modes[0]["empty_rss_mb"] / 2, "the node", color="white", ha="center", va="center", fontsize=9)
    left.set_xticks(range(len(modes)), [mode["exec"].capitalize() for mode in modes])
    left.set_ylabel("MB resident")
    left.set_ylim(0, 215)
    left.set_title(f"A million idle entities ({at})", fontsize=11, loc="left")
    counted = [row for row in of(rows, "tell_64")[0] if row.get("allocs") is not None]
    bars(right, sorted(counted, key=lambda row: row["allocs"]), lambda row: row["allocs"], lambda n: f"{n:.1f}",
         "objects a message, both processes together")
    right.set_title(f"Allocation, 64 bytes one way ({commit})", fontsize=11, loc="left")
    save(figure, path, "Memory of idle entities, and objects allocated for a message")


def main(raw, pictures):
    commit, (run, *_) = newest(f"{raw}/peers.txt", "peers")
    rate(commit, run["rows"], f"{pictures}/rate.svg")
    latency(commit, run["rows"], f"{pictures}/latency.svg")
    memory(commit, run["rows"], newest(f"{raw}/idle-entities.txt", "idle"), f"{pictures}/memory.svg")


if __name__ == "__main__":
    main(*sys.argv[1:])
