"""What a run may not leave behind: processes, sockets, shared memory, temporary folders."""

import json
import os
import pathlib
import re

UID = os.getuid()


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes_of(run_id):
    """Every process of a run has its private folder in the environment, the console and its Lua too."""
    mark = f"FOOTPLATE_DOORBELL_DIR=/tmp/footplate-{UID}/{run_id}.d".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or not alive(entry.name):
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(f"{entry.name} {(entry / 'comm').read_text().strip()}")
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            pass
    return found


def of_dead_processes():
    """Open MPI's session folders and segments, whose names end in the number of the process that made them."""
    paths = [*pathlib.Path("/tmp").glob("ompi.*"), *pathlib.Path("/tmp").glob("prte.*"), *pathlib.Path("/dev/shm").glob("sm_segment*"),
             *pathlib.Path("/dev/shm").glob("osc_*")]
    return {str(path) for path in paths if not any(alive(int(number)) for number in re.findall(r"\d+", path.name))}


def left_by(run, before=frozenset()):
    """Names of all that is left of `run` (harness.Run); `before` is what of_dead_processes() had."""
    record = json.loads((run.directory / "run.json").read_text())
    run_id = record["id"]
    found = [f"process {process}" for process in processes_of(run_id)]
    found += [str(path) for path in pathlib.Path(f"/tmp/footplate-{UID}").glob(f"{run_id}*")]
    found += [str(path) for path in pathlib.Path("/dev/shm").glob(f"footplate-{UID}-{run_id}*")]
    found += sorted(of_dead_processes() - set(before))
    found += [str(path) for pattern in ("*.part", "*.tmp-*", "*.reserved", "checkpoints/*/*.tmp-*") for path in run.directory.glob(pattern)]
    return found
