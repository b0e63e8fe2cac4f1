"""What the tests of installed software share: a shell that knows nothing of the tree, and a look into programs."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("FOOTPLATE_BIN", ROOT / "build" / "release" / "bin"))
BUILD = BIN.parent
CMAKE = os.environ.get("FOOTPLATE_TEST_CMAKE", "cmake")

sys.path.insert(0, str(ROOT / "tests" / "ranks"))
from own_task import write_digits  # noqa: E402,F401  # pylint: disable=wrong-import-position,unused-import

PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(digits LANGUAGES CXX)
find_package(footplate REQUIRED)
footplate_add_task(digits digits.cpp)
"""
CONFIG = """\
run.task = "plugin:build/digits.so"
task.data = "digits.csv"
run.threads = 1
train.steps = 60
train.batch_size = 64
sched.base_lr = 3e-3
eval.every = 60
eval.batches = 0
"""


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


def make_project(folder):
    """What a user writes for docs/examples/digits, in a folder of his own."""
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(PROJECT)
    (folder / "digits.lua").write_text(CONFIG)
    shutil.copy(ROOT / "docs" / "examples" / "digits" / "digits.cpp", folder)
    write_digits(folder / "digits.csv")


def configure(folder, prefix, *options, code=0):
    return called(CMAKE, "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", *options, folder=folder, code=code)


def build_digits(folder, prefix):
    """Builds it with what is in `prefix`, and trains two ranks for some steps. Returns what `footplate check` said."""
    make_project(folder)
    # Compiled before by this very test, it takes a second: what is tested is where things are found.
    cached = os.environ.get("FOOTPLATE_FULL") != "1" and shutil.which("ccache") is not None
    configure(folder, prefix, *(["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if cached else []))
    cache = {"CCACHE_DIR": os.path.expanduser("~/.cache/footplate/ccache"), "CCACHE_NOHASHDIR": "1",
             **{name: value for name, value in os.environ.items() if name.startswith("CCACHE_")}, "CCACHE_BASEDIR": str(folder.parent)}
    began = time.monotonic()
    called(CMAKE, "--build", "build", folder=folder, **cache)
    print(f"digits: built in {time.monotonic() - began:.1f} s{' with ccache' if cached else ''}")
    assert not search_path(folder / "build" / "digits.so"), search_path(folder / "build" / "digits.so")
    footplate = prefix / "bin" / "footplate"
    checked = called(footplate, "check", "digits.lua", folder=folder)
    trained = called(footplate, "run", "digits.lua", "--batch", "-n", "2", "--name", "d", folder=folder)
    assert "end: done · step 60" in trained, trained
    return checked
