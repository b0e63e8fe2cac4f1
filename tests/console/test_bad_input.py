#!/usr/bin/env python3
"""Every wrong input has its exit code and a message that names what, where, what is allowed and the nearest name; and
nothing is started or left half-written."""

import os
import pathlib
import unittest

from harness import Case

HARD = "model.width = 128\nmodel.heads = 4\n"


class BadInput(Case):
    def refused(self, arguments, *texts, code=2):
        self.check(self.footplate(*arguments), code, *texts)
        self.assertEqual(list(self.folder.glob("runs/*")), [], "a run directory was made")

    def refused_config(self, text, *texts):
        """By `run` and by `check`, with the same words."""
        path = self.config("bad", text)
        self.refused(["run", path, "--batch"], *texts)
        self.refused(["check", path], *texts)

    def test_unknown_key(self):
        self.refused_config("log.every = 5\n\nlog.evry = 3\n", "configs/bad.lua:3:", "log.evry", "did you mean log.every?")
        self.refused_config("train.lr = 1e-3\n", "configs/bad.lua:1:", "sched.base_lr")
        self.refused_config("trian.steps = 3\n", "configs/bad.lua:1:", "did you mean train?")
        self.refused_config("steps = 3\n", "configs/bad.lua:1:", "'steps'")
        self.refused(["run", "good", "log.evry=3"], "command line", "did you mean log.every?")

    def test_what_other_languages_write(self):
        self.refused_config("log.every += 5\n", "configs/bad.lua:1:", "Lua has no '+='", "log.every = log.every + 5")
        self.refused_config("optim.eps = 1e-8,\nlog.every = 5\n", "configs/bad.lua:2:", "line 1 ends with a comma")
        self.refused_config("train = {\n  steps = 5\n  batch_size = 3,\n}\n", "line 2 may lack a comma")
        self.refused_config("sched.kind = cosine\n", "configs/bad.lua:1:", 'in quotes, "cosine"')
        self.refused_config('{"train": {"steps": 5}}\n', "looks like JSON", "train.steps = 1000")
        self.refused_config("train:\n  steps: 5\n", "looks like YAML")
        self.refused_config("[train]\nsteps = 5\n", "looks like TOML")
        self.refused_config('run.time_limit = "2 hours"\n', "configs/bad.lua:1:", "2 hours", '"2h"')

    def test_numbers_of_ranks(self):
        for text in ("two", "0", "-1", "2.5", "9999999999"):
            self.refused(["run", "good", f"--ranks={text}"], "how many ranks train", "as in -n 2", f"'{text}'")

    def test_commands_and_their_help(self):
        self.refused(["settings", "zzzz"], "unknown setting 'zzzz'", "footplate settings lists them all")
        self.refused(["rnu"], "did you mean run?")
        self.refused(["frobnicate"], "unknown command", "there are run")
        self.refused([], "footplate run kjv")
        self.check(self.footplate("help"), 0, "train\n  run ", "set up\n  settings", "footplate COMMAND --help")

    def test_wrong_type(self):
        self.refused_config('log.every = "often"\n', "configs/bad.lua:1:", "log.every", "whole number", "often", "0 to")
        self.refused_config("log.every = 1.5\n", "configs/bad.lua:1:", "whole number", "1.5")
        self.refused_config("log.every = nil\n", "configs/bad.lua:1:", "log.every", "nil")
        self.refused_config("log.every = {1}\n", "configs/bad.lua:1:", "log.every", "list")
        self.refused_config("log.every = function() end\n", "configs/bad.lua:1:", "log.every", "function")
        self.refused_config("log = 3\n", "configs/bad.lua:1:", "log is a group")
        self.refused_config("optim.betas = {0.9}\n", "configs/bad.lua:1:", "optim.betas", "2 numbers")
        self.refused(["run", "good", "log.every=often"], "command line", "log.every", "often")

    def test_out_of_range(self):
        self.refused_config("log.every = -1\n", "configs/bad.lua:1:", "log.every", "-1", "allowed: 0 to")
        self.refused_config('sched.kind = "cosin"\n', "configs/bad.lua:1:", "cosin", "one of", "did you mean 'cosine'?")
        self.refused(["run", "good", "train.steps=-5"], "train.steps", "-5", "allowed")

    def test_not_a_number(self):
        self.refused_config("sched.base_lr = 0/0\n", "configs/bad.lua:1:", "sched.base_lr", "NaN")
        self.refused_config("sched.base_lr = math.huge\n", "configs/bad.lua:1:", "infinity")
        self.refused(["run", "good", "sched.base_lr=nan"], "sched.base_lr", "nan")

    def test_impossible_combination(self):
        self.refused_config(HARD + "model.heads = 3\n", "model.width (128, from configs/bad.lua:1)", "is not divisible by",
                            "model.heads (3, from configs/bad.lua:3)")
        self.refused(["run", self.config("hard", HARD), "model.heads=5"], "from command line")

    def test_computed_and_actions(self):
        self.refused_config("optim.lr = 3\n", "configs/bad.lua:1:", "computed", "sched.base_lr")
        self.refused(["run", "good", "optim.lr=3"], "computed")
        self.refused_config("ckpt.save()\n", "configs/bad.lua:1:", "ckpt.save is an action")

    def test_unreadable_config(self):
        self.config("kjv", "")
        self.refused(["run", "kjx"], "can't read config kjx", "did you mean kjv?", "good")
        self.refused(["run", "configs/nothing.lua"], "can't read config configs/nothing.lua", "no such file")
        self.refused(["run", "configs"], "configs", "folder")
        path = self.config("secret", "")
        (self.folder / path).chmod(0)
        if os.getuid() != 0:  # root reads everything
            self.refused(["run", path], path, "Permission denied")
        (self.folder / "configs" / "big.lua").write_text("-- " + "x" * 2_000_000)
        self.refused(["run", "big"], "larger than")
        self.refused(["run"], "needs a config")

    def test_syntax_error(self):
        self.refused_config("log.every = 5\nlog.every = = 3\n", "configs/bad.lua:2:", "near '='")
        self.refused_config("log.every = 5\nif true then\n", "configs/bad.lua:3:", "'end' expected")
        (self.folder / "configs" / "code.lua").write_bytes(b"\x1bLua\x54\x00")
        self.refused(["run", "code"], "configs/code.lua", "binary")
        self.refused_config("log.every = nothing.at.all\n", "configs/bad.lua:1:", "nothing")
        self.refused_config('error("stop here")\n', "configs/bad.lua:1:", "stop here")

    def test_what_a_config_may_not_do(self):
        for code in ("io.open('x')", "os.exit(0)", "require('x')", "load('x')", "string.rep('x', 1e9)", "pcall(error)",
                     "setmetatable({}, {})", "('x'):rep(1e9)", "coroutine.create(print)"):
            self.refused_config(code + "\n", "configs/bad.lua:1:")

    def test_a_config_cannot_hang(self):
        self.refused_config("while true do end\n", "configs/bad.lua:1:", "endless")
        self.refused_config("local t = {}\nfor i = 1, 1e9 do t[i] = i end\n", "configs/bad.lua", "MiB of memory")
        self.refused_config("local s = 'x'\nwhile true do s = s .. s end\n", "configs/bad.lua", "MiB of memory")
        self.refused_config("local s = 'x'\nfor i = 1, 21 do s = s .. s end\nwhile true do local x = s .. 'y' end\n",
                            "configs/bad.lua:3:", "processor time")
        self.refused_config("local function f() return f() + 1 end f()\n", "configs/bad.lua", "MiB of memory")

    def test_command_line(self):
        self.refused(["rnu"], "unknown command 'rnu'", "did you mean run?")
        self.refused(["run", "good", "--bacth"], "unknown option --bacth", "did you mean --batch?")
        self.refused(["run", "good", "-n", "0"], "--ranks", "1 to 4096")
        self.refused(["run", "good", "-n", "two"], "two")
        self.refused(["run", "good", "--batch", "-d"], "-d")
        self.refused(["run", "good", "--name", "../x"], "'../x' can't be the name of a run", "letters")
        for command in (["run", "good"], ["run", "good", "--resume", "auto"], ["replay"]):
            for empty in (["--name", ""], ["--name="]):
                self.refused([*command, *empty], "--name")
        self.refused(["run", "good", "--name", ""], "can't be empty")
        self.refused(["run", "good", "--resume", "auto"], "--name")
        self.refused(["run", "good", "--script-argument", "3"], "none is given with --script")
        self.refused(["run", "good", "--script-argumnet", "3"], "did you mean --script-argument?")
        self.refused(["run", "good", "--resume", "/nowhere"], "/nowhere", "no checkpoint")
        self.refused(["run", "good", "--name", "x", "--resume"], "--resume")
        self.refused([], "footplate COMMAND --help")
        self.refused(["exec"], "CODE")
        self.refused(["settings", "log.evry"], "did you mean")

    def test_no_programs(self):
        (self.folder / "bin" / "footplate-rank").unlink()
        self.refused(["run", "good"], "no program", "footplate-rank")
        (self.folder / "share" / "footplate" / "schema.json").unlink()
        self.refused(["run", "good"], "table of settings", code=1)

    def test_no_mpirun(self):
        result = self.footplate("run", "good", "-n", "2", env={"FOOTPLATE_MPIRUN": "/nowhere/mpirun"})
        self.check(result, 2, "FOOTPLATE_MPIRUN", "/nowhere/mpirun")

    def test_several_launchers(self):
        srun = {"SLURM_PROCID": "2", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "4"}
        self.check(self.footplate("run", "good", "-n", "4", env=srun), 2, "was started 4 times, by srun", "`footplate run CONFIG -n 4` once",
                   "`srun -n 1 footplate run CONFIG -n 4`")
        self.check(self.footplate("run", "good", env={"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}), 2, "2 times, by mpirun")
        self.assertFalse((self.folder / "runs").exists())
        batch_script = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}
        within = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "FOOTPLATE_DOORBELL_DIR": "/tmp/footplate-0/1.d"}
        for environment in (batch_script, {**srun, "SLURM_STEP_NUM_TASKS": "1"}, within):
            self.check(self.footplate("run", "good", "--batch", env=environment), 0)

    def test_no_such_run(self):
        self.check(self.footplate("status"), 4, "there is no run yet")
        self.check(self.footplate("run", "good", "--batch"), 0)
        for command in (["exec", "-r", "godo-1", "return 1"], ["status", "godo-1"], ["stop", "godo-1"], ["log", "godo-1"]):
            self.check(self.footplate(*command), 4, "no run 'godo-1'", "did you mean good-1?", "good-1 (ended)")
        self.check(self.footplate("status", "./nowhere"), 4, "nowhere holds no run")


class Combinations(Case):
    def test_a_micro_batch_is_no_larger_than_the_batch(self):
        self.check(self.footplate("check", "good", "train.micro_batch=9999"), 2, "train.micro_batch (9999, from command line) is larger than "
                   "train.batch_size (32, from default)", "a rank's slice of the batch")
        self.check(self.footplate("check", "good", "train.micro_batch=32"), 0)

    def test_a_name_that_is_empty(self):
        self.check(self.footplate("run", "good", "--name", ""), 2, "can't be empty")

    def test_what_nccl_cant_do_together(self):
        for command in ("check", "run"):
            self.check(self.footplate(command, "good", "nccl.min_ctas=8", "nccl.max_ctas=4"), 2,
                       "nccl.min_ctas (8, from command line) is larger than nccl.max_ctas (4, from command line)")
        self.check(self.footplate("check", "good", "nccl.socket_threads=16", "nccl.sockets_per_thread=64"), 2, "is more than 64")
        self.check(self.footplate("check", "good", "nccl.net=" + "x" * 80), 2, "nccl.net can't have 80 characters", "0 to 63")
        rules = ("check", "good", "nccl.rules=ring 4 channels")
        self.check(self.footplate(*rules), 2, "all_reduce ring 4 channels, from command line", "nccl.min_ctas (0, from default)")
        self.check(self.footplate(*rules, env={"NCCL_MIN_CTAS": "4"}), 0)
        self.check(self.footplate(*rules, env={"NCCL_MIN_CTAS": "2"}), 2, "nccl.min_ctas (2, from environment)")

    def test_nccls_own_file_counts_as_the_environment(self):
        file = pathlib.Path("nccl.conf")  # a long path would be told with its end cut off
        (self.folder / file).write_text("# of this cluster\nNCCL_MIN_CTAS=2\nNCCL_IB_TIMEOUT=22\nNCCL_TIMEOUT=1800\n")
        env = {"NCCL_CONF_FILE": str(file)}
        rules = ("check", "good", "nccl.rules=ring 4 channels", "nccl.ib_timeout=18")
        overrides = f"NCCL_IB_TIMEOUT=22 in {file} overrides nccl.ib_timeout = 18 (command line); take that line out"
        self.check(self.footplate(*rules, env=env), 2, f"nccl.min_ctas (2, from environment ({file}))", overrides,
                   f"NCCL_TIMEOUT=1800 in {file} does nothing here")
        result = self.footplate(*rules, env={**env, "NCCL_MIN_CTAS": "4"})
        self.check(result, 0, overrides)
        self.assertIn(f"environment ({file})", result.stdout)


class Data(Case):
    """`footplate check` has the rank's program look at the data."""

    def test_what_can_not_be_had_is_said(self):
        missing = 'data.corpus = "/no/such": no such file or folder'
        result = self.check(self.footplate("check", "good", "data.corpus=/no/such", fake={"no_data": missing}), 2)
        self.assertEqual((result.stdout, result.stderr), ("", f"footplate: {missing}\n"))
        self.check(self.footplate("check", "good"), 0, "good; everything else")

    def test_a_rank_that_can_not_be_asked_refuses_nothing(self):
        rank = self.folder / "bin" / "footplate-rank"
        for text in ("#!/bin/sh\necho 'libtorch.so: cannot open' >&2\nexit 127\n", None):
            rank.write_text(text) if text else rank.unlink()
            result = self.check(self.footplate("check", "good"), 0, "good; everything else")
            self.assertIn("footplate: whether data.corpus can be had was not checked: ", result.stderr)
            self.assertIn("libtorch.so: cannot open" if text else "no program", result.stderr)


class GoodConfigs(Case):
    def test_forms(self):
        self.config("base", "\ufefftrain.steps = 1000\noptim.betas = {0.8, 0.9}\nlocal warm = train.steps // 10\n"
                            "sched.warmup_steps = warm\n")
        self.config("over", 'train.set{ clip_norm = 2, batch_size = 2^3 }\nset{ eval = { every = 7 }, ["log.every"] = 9 }\n'
                            'if train.steps > 500 then run.time_limit = "30m" end\n')
        result = self.footplate("check", "base", "configs/over.lua", "log.every=11", "optim.betas={0.7,0.8}")
        self.check(result, 0)
        lines = {line.split(" = ")[0]: line for line in result.stdout.splitlines() if " = " in line}
        for name, value, source in (("sched.warmup_steps", "100", "configs/base.lua:4"), ("train.clip_norm", "2", "configs/over.lua:1"),
                                    ("train.batch_size", "8", "configs/over.lua:1"), ("eval.every", "7", "configs/over.lua:2"),
                                    ("run.time_limit", "1800", "configs/over.lua:3"), ("log.every", "11", "command line"),
                                    ("optim.betas", "{0.7, 0.8}", "command line")):
            self.assertIn(f"{name} = {value} ", lines[name] + " ")
            self.assertIn(source, lines[name])

    def test_settings_table(self):
        self.check(self.footplate("settings", "log.every"), 0, "log.every", "0 to")
        self.check(self.footplate("settings", "eval_interval"), 0, "eval.every")
        self.check(self.footplate("settings", "--json"), 0, '"constraints"')


if __name__ == "__main__":
    unittest.main(verbosity=2)
