#!/usr/bin/env python3
"""`cmake --install`: a prefix with a blank in its path, moved, from which a task of somebody's own is built and trained."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from installed import BUILD, CMAKE, ROOT, build_digits, called, configure, elf_files, make_project, search_path, write_digits


class Prefix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", cls.folder / "made here"], check=True, stdout=subprocess.DEVNULL)
        cls.prefix = cls.folder / "a prefix"
        (cls.folder / "made here").rename(cls.prefix)

    def test_everything_is_there(self):
        for name in ("bin/footplate", "bin/footplate-console", "bin/footplate-lua", "bin/footplate-rank", "lib/libfootplate_cuda.so",
                     "include/footplate/task.h", "include/footplate/module.h", "lib/cmake/footplate/footplateConfig.cmake",
                     "share/footplate/schema.json", "share/footplate/configs/kjv.lua", "share/footplate/configs/presets/large.lua", "share/footplate/jobs/lr_sweep.lua",
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

    def test_programs_of_the_build_look_nowhere_else(self):
        """An empty element is the folder that a program is started in: whoever may write there could give it a library."""
        for name in ("bin/footplate", "bin/footplate-console", "bin/footplate-lua", "bin/footplate-rank", "lib/libfootplate_cuda.so",
                     "lib/libfootplate_python.so"):
            for place in search_path(BUILD / name):
                self.assertTrue(place.startswith("$ORIGIN/"), (name, place))

    def test_a_task_is_built_from_it_and_trains(self):
        self.assertIn("plugin:", build_digits(self.folder / "own task", self.prefix))

    def test_a_task_in_python_finds_the_environment_of_torch(self):
        folder = self.folder / "in python"
        folder.mkdir()
        shutil.copy(ROOT / "docs" / "examples" / "python" / "digits.py", folder)
        write_digits(folder / "digits.csv")
        said = called(self.prefix / "bin" / "footplate", "run", "synthetic", "run.task=python:digits.py", "task.data=digits.csv",
                      "train.steps=10", "run.threads=1", "eval.every=0", "--batch", "-n", "2", folder=folder)
        self.assertIn("end: done · step 10", said)

    def test_another_libtorch_is_refused_with_both_versions(self):
        folder = self.folder / "other torch"
        make_project(folder)
        torch = self.folder / "a venv" / "lib" / "python3.12" / "site-packages" / "torch"
        (torch / "lib").mkdir(parents=True)
        (torch / "lib" / "libtorch_cpu.so").touch()
        header = torch / "include" / "torch" / "headeronly" / "version.h"
        header.parent.mkdir(parents=True)
        header.write_text("#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 9\n#define TORCH_VERSION_PATCH 1\n")
        for given in (torch, torch / "lib", self.folder / "a venv"):
            said = " ".join(configure(folder, self.prefix, f"-DFOOTPLATE_TORCH={given}", code=1).split())
            for text in ("is LibTorch 2.9.1", "this footplate needs LibTorch 2.", "pip install torch==2.", "-DFOOTPLATE_TORCH=DIR"):
                self.assertIn(text, said)
        said = " ".join(configure(folder, self.prefix, f"-DFOOTPLATE_TORCH={self.folder}", code=1).split())
        self.assertIn("no LibTorch (lib/libtorch_cpu.so) in", said)


if __name__ == "__main__":
    unittest.main()
