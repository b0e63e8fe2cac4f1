#!/usr/bin/env python3
"""What scripts/ say where there is no device: that something was left out, and why."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="Linux" tests="4" failures="0" disabled="0" skipped="3">
  <testcase name="schema_test" status="run"><system-out>a.cpp:7: Skipped is not what this one says of itself</system-out></testcase>
  <testcase name="device_test" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
    <system-out>[ RUN      ] OnADevice.A
tests/device_test.cpp:67: Skipped
no CUDA device here (libcuda.so.1 shows none)
[  SKIPPED ] OnADevice.A (0 ms)
tests/device_test.cpp:67: Skipped
another one
</system-out></testcase>
  <testcase name="device_runs" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
    <system-out>skipped: no device for runs
</system-out></testcase>
  <testcase name="silent_test" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
</testsuite>
"""


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)


FAILED = """<testsuite name="Linux" tests="3" failures="2">
  <testcase name="ranks_load" status="fail"><failure message="Failed"/></testcase>
  <testcase name="ranks_load_again" status="fail"><failure message="Timeout"/></testcase>
  <testcase name="ranks_start" status="run"/>
</testsuite>
"""


class SearchedFolders(unittest.TestCase):
    """With an exported CDPATH `cd` goes elsewhere, and prints where."""

    ROOT = SCRIPTS.parent

    def called(self, *command, cdpath="."):
        return subprocess.run(command, cwd=self.ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
                              env={**os.environ, "CDPATH": cdpath})

    def test_scripts_know_where_they_are(self):
        for cdpath in (".", str(self.ROOT), ":/tmp"):
            found = self.called("bash", "-c", 'source scripts/lib/common.bash; printf "%s\n" "$ROOT"', cdpath=cdpath)
            self.assertEqual((found.stdout, found.stderr), (f"{self.ROOT}\n", ""), cdpath)
        self.assertEqual(self.called("scripts/deps", "--check").stderr, self.called("scripts/deps", "--check", cdpath="").stderr)

    def test_programs_of_a_bundle_know_where_they_are(self):
        said = self.called("scripts/lib/bundle_setup").stderr
        self.assertIn(f": {self.ROOT}/scripts/lib/lib/libtorch.version", said)
        said = self.called("bash", "-xc", "source scripts/lib/bundle_check_device --help").stderr
        self.assertIn(f"built={self.ROOT}/build/release\n", said)


class SecondTry(unittest.TestCase):
    def pattern(self, listed, code=0):
        with tempfile.TemporaryDirectory() as folder:
            sensitive, report = pathlib.Path(folder, "sensitive.txt"), pathlib.Path(folder, "report.xml")
            sensitive.write_text("# NAME  DATE  REASON\n\n" + listed)
            report.write_text(FAILED)
            result = run(sys.executable, SCRIPTS / "lib" / "second_try.py", sensitive, report)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout if code == 0 else result.stderr

    def test_only_what_failed_and_is_on_the_list(self):
        self.assertEqual(self.pattern(""), "")
        self.assertEqual(self.pattern("ranks_start 2026-11-24 waits for a clock\n"), "")
        self.assertEqual(self.pattern("ranks_start 2026-11-24 x\nranks_load 2026-11-24 waits for a clock\n"), "^(ranks_load)$\n")

    def test_a_line_has_a_date_and_a_reason(self):
        for line in ("ranks_load", "ranks_load 2026-11-24", "ranks_load 24.11.2026 waits for a clock", "ranks_load soon it is mended"):
            self.assertIn("sensitive.txt:3: a test, a date (2026-01-31) and a reason, not: " + line, self.pattern(line + "\n", code=2))

    def test_the_list_is_as_it_has_to_be(self):
        result = run(sys.executable, SCRIPTS / "lib" / "second_try.py", SCRIPTS.parent / "tests" / "sensitive.txt")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))


class LimitsOfBenchmarks(unittest.TestCase):
    """scripts/bench.d/measure.py: a benchmark ends with exit code 1 beyond a limit."""

    def ends(self, comparison, short=False):
        program = f"from measure import Limits\nlimits = Limits()\nlimits.{comparison}\nlimits.hold()"
        result = subprocess.run([sys.executable, "-c", program], cwd=SCRIPTS / "bench.d", capture_output=True, text=True, timeout=60, check=False,
                                env={**os.environ, "FOOTPLATE_BENCH_SHORT": "1" if short else "", "PYTHONDONTWRITEBYTECODE": "1"})
        return result.returncode, result.stderr

    def test_a_figure_may_reach_its_limit_and_not_pass_it(self):
        for comparison in ("at_most('the ratio', 1.02, 1.02)", "at_least('the ratio', 1.05, 1.05)"):
            self.assertEqual(self.ends(comparison), (0, ""))
        self.assertEqual(self.ends("at_most('the ratio', 1.03, 1.02)"), (1, "beyond the limits: the ratio is 1.03, at most 1.02 is wanted\n"))
        self.assertEqual(self.ends("at_least('the ratio', 1.04, 1.05)"), (1, "beyond the limits: the ratio is 1.04, at least 1.05 is wanted\n"))
        self.assertEqual(self.ends("at_most('it', float('nan'), 1)")[0], 1)

    def test_in_the_short_form_only_what_is_far_beyond_counts(self):
        for comparison, code in (("at_most('it', 1.49, 1)", 0), ("at_most('it', 1.51, 1)", 1), ("at_least('it', 0.51, 1)", 0),
                                 ("at_least('it', 0.49, 1)", 1), ("at_most('it', 1.05, 1, 1.03)", 0), ("at_most('it', 1.07, 1, 1.05)", 1),
                                 ("at_least('it', 0.95, 1, 0.97)", 0), ("at_least('it', 0.93, 1, 0.95)", 1), ("at_most('it', float('nan'), 1, 0.9)", 1)):
            self.assertEqual(self.ends(comparison, short=True)[0], code, comparison)


class WithoutADevice(unittest.TestCase):
    def test_why_tests_were_skipped(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as report:
            report.write(REPORT)
            report.flush()
            result = run(sys.executable, SCRIPTS / "lib" / "skip_reasons.py", report.name)
        self.assertEqual(result.stdout.splitlines(), ["device_test: no CUDA device here (libcuda.so.1 shows none)",
                                                      "device_runs: no device for runs", "silent_test: SKIP_RETURN_CODE=77"], result.stderr)

    @unittest.skipIf(any(pathlib.Path("/dev").glob("nvidia[0-9]*")), "there is a device, which would be measured")
    def test_benchmarks_of_a_device_are_skipped(self):
        result = run(SCRIPTS / "bench", "--device", "--quick")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        self.assertIn("bench: skipped: no CUDA device here (there is no /dev/nvidia*); scripts/bundle --device", result.stdout)

    def test_unknown_benchmarks(self):
        result = run(SCRIPTS / "bench", "--divice")
        self.assertEqual(result.returncode, 2, result)
        self.assertIn("scripts/bench --device", result.stderr)
        result = run(SCRIPTS / "lib" / "bundle_check_device", "--without-tests", "gtp2")
        self.assertEqual(result.returncode, 2, result)
        self.assertIn("parts are tests, runs, gpt2", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
