"""What the tests of installed software share: a shell that knows nothing of the tree, and a look into programs."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("FOOTPLATE_BIN", ROOT / "build" / "release" / "bin"))
BUILD = BIN.parent
CMAKE = os.environ.get("FOOTPLATE_TEST_CMAKE", "cmake")

sys.path.insert(0, str(ROOT / "tests" / "ranks"))
from test_plugin import write_digits  # noqa: E402,F401  # pylint: disable=wrong-import-position,unused-import


def bare(folder):
    """The environment of a user who has only what is installed; a home with a blank, and no device."""
    home = pathlib.Path(folder) / "a home"
    home.mkdir(exist_ok=True)
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "CUDA_VISIBLE_DEVICES": "",
            "XDG_STATE_HOME": str(home / "state")}


def called(*command, folder, code=0, **variables):
    """What a program says, both streams; it has to end with `code`."""
    done = subprocess.run([str(word) for word in command], cwd=folder, env={**bare(folder), **variables}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def elf_files(folder):
    """Programs and libraries below it; what links lead to isn't looked into."""
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
            yield path


def search_path(program):
    """The folders of its RPATH."""
    text = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    return [folder for found in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text) for folder in found.split(":")]
