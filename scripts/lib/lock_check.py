"""Has clang check the locks of every source file that has any (protocol/mutex.h): what is GUARDED_BY a mutex is
touched only where that is locked.

Arguments: the folder of a compilation database, then the C++ files of the tree. Prints what clang objects to; exit
code 1 where it does.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

CLANG = "clang++-14"
LOCKS = re.compile(r"\b(GUARDED_BY|REQUIRES|Mutex|MutexLock)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
ONLY_LOCKS = ["-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety"]


def arguments(command: str) -> list[str]:
    """Those of a compiler's command that say how a file is read: includes, definitions, the standard."""
    kept, words = [], iter(shlex.split(command)[1:])
    for word in words:
        if word in ("-isystem", "-idirafter"):
            kept += [word, next(words)]
        elif word.startswith(("-I", "-D", "-std=", "-isystem")):
            kept.append(word)
    return kept


def check(file: str, command: str) -> str:
    run = [CLANG, *arguments(command), *ONLY_LOCKS, file]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def main(database: str, paths: list[str]) -> int:
    text = {path: pathlib.Path(path).read_text(encoding="utf-8") for path in paths}
    locked = {path for path in paths if path != "protocol/mutex.h" and LOCKS.search(text[path])}
    commands = {
        os.path.relpath(entry["file"]): entry["command"]
        for entry in json.loads(pathlib.Path(database, "compile_commands.json").read_text(encoding="utf-8"))
    }
    files = [
        path for path in paths
        if path.startswith(("protocol/", "runtime/", "console/")) and path in commands
        and (path in locked or locked.intersection(INCLUDE.findall(text[path])))
    ]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [said for said in pool.map(lambda path: check(path, commands[path]), files) if said]
    for said in complaints:
        print(said, end="")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
