#!/usr/bin/env python3
"""`cmake --install`: a prefix with a blank in its path, moved, from which a task of somebody's own is built and trained."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from installed import BUILD, CMAKE, ROOT, called, elf_files, search_path, write_digits

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


class Prefix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", cls.folder / "made here"], check=True, stdout=subprocess.DEVNULL)
        cls.prefix = cls.folder / "a prefix"
        (cls.folder / "made here").rename(cls.prefix)

    def project(self, name):
        folder = self.folder / name
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(PROJECT)
        (folder / "digits.lua").write_text(CONFIG)
        shutil.copy(ROOT / "docs" / "examples" / "digits" / "digits.cpp", folder)
        write_digits(folder / "digits.csv")
        return folder

    def configure(self, folder, *options, code=0):
        return called(CMAKE, "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", *options, folder=folder, code=code)

    def test_everything_is_there(self):
        for name in ("bin/footplate", "bin/footplate-console", "bin/footplate-lua", "bin/footplate-rank", "lib/libfootplate_cuda.so",
                     "include/footplate/task.h", "include/footplate/module.h", "lib/cmake/footplate/footplateConfig.cmake",
                     "share/footplate/schema.json", "share/footplate/configs/kjv.lua", "share/footplate/jobs/lr_sweep.lua",
                     "share/doc/footplate/LICENSE", "share/doc/footplate/docs/own-models.md",
                     "share/bash-completion/completions/footplate", "share/zsh/site-functions/_footplate"):
            self.assertTrue((self.prefix / name).stat().st_size > 0, name)

    def test_no_program_has_a_path_of_the_machine_that_built_it(self):
        found = list(elf_files(self.prefix))
        self.assertEqual(len(found), len(set(path.name for path in found)))
        self.assertGreaterEqual(len(found), 5)
        for path in found:
            for place in search_path(path):
                self.assertTrue(place.startswith("$ORIGIN"), (path, place))

    def test_a_task_is_built_from_it_and_trains(self):
        folder = self.project("own task")
        # Compiled before by this very test, it takes a second: what is tested is where things are found.
        cached = [] if os.environ.get("FOOTPLATE_FULL") == "1" or not shutil.which("ccache") else ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
        self.configure(folder, *cached)
        began = time.monotonic()
        cache = {name: value for name, value in os.environ.items() if name.startswith("CCACHE_")}
        called(CMAKE, "--build", "build", folder=folder, **{**cache, "CCACHE_BASEDIR": str(self.folder), "CCACHE_NOHASHDIR": "1",
               "CCACHE_DIR": os.environ.get("CCACHE_DIR", os.path.expanduser("~/.cache/footplate/ccache"))})
        print(f"digits: built in {time.monotonic() - began:.1f} s {'with ccache' if cached else ''}")
        self.assertEqual(search_path(folder / "build" / "digits.so"), [])

        footplate = self.prefix / "bin" / "footplate"
        self.assertIn("plugin:", called(footplate, "check", "digits.lua", folder=folder))
        said = called(footplate, "run", "digits.lua", "--batch", "-n", "2", "--name", "d", folder=folder)
        self.assertIn("end: done · step 60", said)

    def test_another_libtorch_is_refused_with_both_versions(self):
        folder = self.project("other torch")
        torch = self.folder / "a venv" / "lib" / "python3.12" / "site-packages" / "torch"
        (torch / "lib").mkdir(parents=True)
        (torch / "lib" / "libtorch_cpu.so").touch()
        header = torch / "include" / "torch" / "headeronly" / "version.h"
        header.parent.mkdir(parents=True)
        header.write_text("#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 9\n#define TORCH_VERSION_PATCH 1\n")
        for given in (torch, torch / "lib", self.folder / "a venv"):
            said = " ".join(self.configure(folder, f"-DFOOTPLATE_TORCH={given}", code=1).split())
            for text in ("is LibTorch 2.9.1", "this footplate needs LibTorch 2.", "pip install torch==2.", "-DFOOTPLATE_TORCH=DIR"):
                self.assertIn(text, said)
        said = " ".join(self.configure(folder, f"-DFOOTPLATE_TORCH={self.folder}", code=1).split())
        self.assertIn("no LibTorch (lib/libtorch_cpu.so) in", said)


if __name__ == "__main__":
    unittest.main()
