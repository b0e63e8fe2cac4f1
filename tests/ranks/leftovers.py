"""What a run may not leave behind: processes, sockets, shared memory, temporary folders.

Only what is the run's own counts: processes with its mark in their environment, folders named after its id, files in
its run directory. Other runs of the same user, and other programs of MPI, may live and die beside it.
"""

import contextlib
import os
import pathlib
import re
import tempfile

from harness import wait_until

UID = os.getuid()
PRIVATE = pathlib.Path(f"/tmp/footplate-{UID}")
SHARED = pathlib.Path("/dev/shm")


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def marked(*marks):
    """Pids of what lives and has one of these settings (NAME=VALUE) in its environment; a pid may be another's by now, a
    mark can't."""
    wanted = {mark.encode() for mark in marks}
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted & set((entry / "environ").read_bytes().split(b"\0")) and alive(entry.name):
                found.append(int(entry.name))
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            pass  # it has ended, or is another user's
    return found


def processes_of(run):
    """The supervisor and what clears up after it have the test's mark, all that they start their private folder, too."""
    return marked(f"FOOTPLATE_TEST_MARK={run.mark}", f"FOOTPLATE_DOORBELL_DIR={PRIVATE}/{run.record()['id']}.d")


def folders_of(run_id):
    """Its socket, its private folder, and the one of its shared memory."""
    return [*PRIVATE.glob(f"{run_id}.*"), *SHARED.glob(f"footplate-{UID}-{run_id}*")]


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return "(ended)"


def left_by(run):
    """Names of all that is left of `run` (harness.Run)."""
    found = [f"process {pid} {name_of(pid)}" for pid in processes_of(run)]
    found += map(str, folders_of(run.record()["id"]))
    found += [str(path) for pattern in ("*.part", "*.tmp-*", "*.reserved", "checkpoints/*/*.tmp-*") for path in run.directory.glob(pattern)]
    return found


def nothing_left(run, timeout_s=10):
    """Waits until nothing is; the error names what is."""
    try:
        wait_until(lambda: not left_by(run), timeout_s, "nothing to be left")
    except AssertionError as error:
        raise AssertionError(f"{error}: {left_by(run)}") from None


def strays_of(run):
    """What a live run has made in folders that are everybody's, outside its own: files that its processes hold open or
    mapped, and what is named after one of them."""
    pids = processes_of(run)
    everybodys = {pathlib.Path("/tmp"), SHARED, pathlib.Path(tempfile.gettempdir())}
    own = (run.folder, *folders_of(run.record()["id"]))
    paths = set()
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            paths |= {os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
            paths |= set(re.findall(r" (/.*)$", pathlib.Path(f"/proc/{pid}/maps").read_text(), re.MULTILINE))
    for folder in everybodys:
        paths |= {str(path) for path in folder.iterdir() if set(pids) & {int(number) for number in re.findall(r"\d+", path.name)}}

    def is_in(path, folders):
        return any(pathlib.Path(path).is_relative_to(folder) for folder in folders)

    def is_made_by_it(path):
        with contextlib.suppress(FileNotFoundError):  # nothing is left of it
            return os.lstat(path).st_mtime >= (run.directory / "config-1.json").stat().st_mtime
        return False
    return sorted(path for path in paths if is_in(path, everybodys) and not is_in(path, own) and is_made_by_it(path))
