"""Holds the sources against rooms.txt: what includes what, how large a room is, which names are used twice.

Prints a line for each complaint; exit code 1 where there is one.
"""

import collections
import pathlib
import re
import sys

LARGEST = 0.20  # of the lines of runtime/, in one room of it
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def main(paths: list[str]) -> int:
    rooms = [
        line for line in pathlib.Path(__file__).with_name("rooms.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    floor = {room: number for number, room in enumerate(rooms)}
    longest_first = sorted(rooms, key=len, reverse=True)

    def room_of(path: str) -> str | None:
        return next((room for room in longest_first if path == room or path.startswith(room + "/")), None)

    complaints = []
    lines: collections.Counter[str] = collections.Counter()
    names = collections.defaultdict(list)
    for path in paths:
        if not path.startswith(("protocol/", "run_files/", "runtime/", "console/")):
            continue
        text = pathlib.Path(path).read_text(encoding="utf-8")
        room = room_of(path)
        if room is None:
            complaints.append(f"{path} is in no room of scripts/lib/rooms.txt")
            continue
        lines[room] += text.count("\n")
        if pathlib.Path(path).name not in ("main.cpp",):
            names[pathlib.Path(path).name].append(path)
        for included in INCLUDE.findall(text):
            other = room_of(included)
            if other is not None and floor[other] > floor[room]:
                complaints.append(f"{path} includes {included}: {other} stands above {room}")
    runtime = sum(count for room, count in lines.items() if room.startswith("runtime/"))
    for room, count in lines.items():
        if room.startswith("runtime/") and count > LARGEST * runtime:
            complaints.append(f"{room} has {count} lines, more than {LARGEST:.0%} of runtime/: a room to divide")
    for name, places in sorted(names.items()):
        if len(places) > 1:
            complaints.append(f"{name} is the name of {' and '.join(places)}")
    print("\n".join(complaints), end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
