#!/usr/bin/env python3
"""footplate doctor: its lines, JSON and exit code, over a rank and an mpirun that are fakes (tests/ranks/test_doctor.py has real ones).
What it says of this machine's memory, cores and so on isn't known here; tests/unit/doctor has that."""

import json
import os
import signal
import subprocess
import sys
import unittest

import pexpect

from harness import Case, FOOTPLATE, wait_until

RANK = """
import json, os, pathlib, sys, time
fake = json.loads(os.environ.get("FAKE_DOCTOR", "{}"))
here = pathlib.Path(__file__).resolve().parents[1]
what = sys.argv[sys.argv.index("--doctor") + 1] if "--doctor" in sys.argv else "run"
with open(here / "asked", "a") as file:
    print(what, os.environ["FOOTPLATE_DOORBELL_DIR"], *sys.argv[1:], file=file)
hosts = os.environ.get("FAKE_HOSTS", "")
if what in fake.get("hang", []):
    time.sleep(600)
if what in fake.get("fail", []):
    print(f"no {what} with this one", file=sys.stderr)
    sys.exit(1)
if what == "versions":
    print(json.dumps({"footplate": "@VERSION@", "libtorch": "2.11.0", "libtorch_file": "/opt/libtorch_cpu.so", "mpi": "Open MPI v5.0.11",
                      "host": hosts.split(":")[0], "cores": 4, **fake.get("versions", {}), **fake.get("there", {}).get(hosts, {})}))
if what == "link":
    print(json.dumps({"hosts": hosts.replace(":1", "").split(","), "gb_per_s": 1.25, "latency_us": 20, **fake.get("link", {})}))
if what == "products":
    print(json.dumps(fake.get("products", {"mkl_ms": 2, "openblas_ms": 2.3, "ratio": 1.15, "openblas": "OpenBLAS 0.3.34 (Zen)", "automatic": "mkl"})))
if what == "loss":
    print("noise from mpirun")
    print(json.dumps({"survivors": 1, "noticed_ms": 1.5, "recovered_ms": 2, **fake.get("loss", {})}))
if what == "reduce":
    elements = int(sys.argv[sys.argv.index("--elements") + 1])
    given = fake.get("reduce", {}) if not hosts else fake.get("together", {})
    print(json.dumps({"ranks": 2, "elements": elements, "wrong": 0, "seconds": 0.01, **given}))
if what == "run":
    folder = pathlib.Path(sys.argv[sys.argv.index("--run-dir") + 1])
    assert os.environ["FOOTPLATE_FAULT"] == "eval_throw"
    lines = [json.dumps({"step": 5 * (i + 1), "eval/evaluation_failed": 1}) + "\\n" for i in range(fake.get("recorded", 3))]
    (folder / "metrics.jsonl").write_text("".join(lines))
    (folder / "result.json").write_text(json.dumps({"code": 0, "reason": "done", "step": fake.get("step", 20), "checkpoint": None}))
"""
MPIRUN = """#!/bin/sh
echo "$@" >>"$0.log"
while [ "${1##*/}" != footplate-rank ]; do
  [ "$1" != --host ] || export FAKE_HOSTS="$2"
  shift
done
case "$FAKE_HOSTS" in
  gone:*) echo "ssh: connect to host gone port 22: Connection refused" >&2; echo "A daemon failed to report back" >&2; exit 1;;
  bare:*) echo "$PRTE_MCA_plm_ssh_args" >&2; exit 1;;
esac
exec "$@"
"""
TRIED = ("versions", "environment", "products", "fault tolerance", "all-reduce", "large reduction", "deadlines", "evaluation")
LOOKED_AT = ("memory", "cores", "devices", "network", "shared memory", "limits", "logout", "disk", "settings")


class Doctor(Case):
    def setUp(self):
        super().setUp()
        version = subprocess.run([FOOTPLATE, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout.split()[1]
        self.program("footplate-rank", f"#!{sys.executable}\n{RANK.replace('@VERSION@', version)}")
        for name in ("footplate-console", "footplate-lua"):  # no rank is there to start them
            self.program(name, "")
        self.environment["FOOTPLATE_MPIRUN"] = self.program("mpirun", MPIRUN)

    def program(self, name, text):
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def doctor(self, *options, fake=None, env=None):
        return self.footplate("doctor", *options, env={"FAKE_DOCTOR": json.dumps(fake or {}), **(env or {})})

    def examine(self, *options, fake=None, env=None):
        """{name: check} of --json, which has to agree with itself and with the exit code."""
        result = self.doctor("--elements", "1000000", "--json", *options, fake=fake, env=env)
        report = json.loads(result.stdout)
        self.assertEqual(result.stdout.count("\n"), 1)
        self.assertEqual(report["good"], all(check["verdict"] != "to mend" for check in report["checks"]))
        self.assertEqual(result.returncode, 0 if report["good"] else 1, result.stderr)
        for check in report["checks"]:
            self.assertIn(check["verdict"], ("good", "to mend", "left out"))
            self.assertTrue(check["found"])
            self.assertEqual(bool(check["mend"]), check["verdict"] == "to mend", check)
        self.check_private_folders_are_gone()
        return {check["name"]: check for check in report["checks"]}

    def asked(self):
        path = self.folder / "asked"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def check_private_folders_are_gone(self):
        for _, folder, *_ in self.asked():
            self.assertFalse(os.path.exists(folder), folder)

    def check_to_mend(self, checks, name, *texts):
        self.assertEqual(checks[name]["verdict"], "to mend", checks[name])
        for text in texts:
            self.assertIn(text, checks[name]["found"] + " " + checks[name]["mend"])

    def test_everything_is_looked_at_and_tried(self):
        checks = self.examine()
        self.assertEqual(list(checks), [*LOOKED_AT, *TRIED])
        for name in TRIED:
            self.assertEqual(checks[name]["verdict"], "good", checks[name])
        self.assertEqual([words[0] for words in self.asked()], ["versions", "products", "loss", "reduce", "reduce", "run"])
        self.assertEqual(checks["large reduction"]["values"]["elements"], 1000000)
        self.assertAlmostEqual(checks["large reduction"]["values"]["gb_per_s"], 0.4)
        self.assertEqual(list((self.folder / "home").glob("**/runs/*")), [])  # its own run isn't among the user's

    def test_settings_and_whether_deadlines_fit(self):
        checks = self.examine("good", "comm.small_timeout_s=60")
        self.assertIn("comm.small_timeout_s = 60 s (command line)", checks["settings"]["found"])
        self.assertEqual(checks["deadlines"]["verdict"], "good", checks["deadlines"])
        self.assertAlmostEqual(checks["deadlines"]["values"]["gb_per_s"], 0.4)
        slow = self.examine("comm.small_timeout_s=0.02", fake={"reduce": {"seconds": 1}})
        self.check_to_mend(slow, "deadlines", "comm.small_timeout_s = ")

    def test_the_large_reduction_is_what_fits(self):
        result = self.doctor("--json")
        check = {check["name"]: check for check in json.loads(result.stdout)["checks"]}["large reduction"]
        asked = [int(words[-1]) for words in self.asked() if words[0] == "reduce"][-1]
        if asked < 500_000_000:  # of this machine's memory
            self.assertIn("the most that fit, 500 M elements need", check["found"])
        self.assertEqual(check["values"]["elements"], asked)

    def test_lines(self):
        result = self.doctor("--elements", "1000000")
        lines = [line for line in result.stdout.splitlines() if not line.startswith(" ")]
        self.assertEqual([line[10:27].strip() for line in lines[:-1]], [*LOOKED_AT, *TRIED])
        self.assertTrue(lines[-1].startswith("this machine is fit for runs") if result.returncode == 0 else "to mend" in lines[-1], lines[-1])
        self.assertEqual(result.stderr, "")

    def test_quick(self):
        checks = self.examine("--quick")
        for name in ("large reduction", "evaluation"):
            self.assertEqual((checks[name]["verdict"], checks[name]["found"]), ("left out", "--quick"))
        self.assertEqual([words[0] for words in self.asked()], ["versions", "products", "loss", "reduce"])

    def test_rank_that_does_not_start(self):
        checks = self.examine(fake={"fail": ["versions"]})
        self.check_to_mend(checks, "versions", "no versions with this one", "scripts/deps --check")
        self.assertEqual(list(checks), [*LOOKED_AT, *TRIED])
        for name in TRIED[1:]:
            self.assertEqual(checks[name]["verdict"], "left out", checks[name])
            self.assertEqual(checks[name]["found"], "not checked: footplate-rank doesn't start (versions, above)")
        (self.folder / "bin" / "footplate-lua").unlink()
        self.check_to_mend(self.examine("--quick"), "versions", "no footplate-lua", "scripts/run")
        (self.folder / "bin" / "footplate-rank").unlink()
        self.check_to_mend(self.examine(), "versions", "no program", "footplate-rank")

    def test_elements_have_a_sensible_unit(self):
        for elements, text in (("100", "100 elements between"), ("250000", "250 k elements between"), ("1500000", "1.5 M elements between")):
            result = self.doctor("--elements", elements)
            self.assertIn(text, result.stdout)
            self.assertNotIn("very slow", result.stdout)  # so few take no longer than the way there and back

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_what_cannot_be_written_is_an_error(self):
        for command in (["doctor", "--quick"], ["doctor", "--quick", "--json"], ["settings"], ["ls"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                process = subprocess.run([FOOTPLATE, *command], cwd=self.folder, env=self.environment, timeout=60, stdout=full,
                                         stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(process.returncode, 1, (command, process.stderr))
            self.assertIn("can't write to stdout", process.stderr)

    def test_no_mpirun(self):
        checks = self.examine(env={"FOOTPLATE_MPIRUN": "/nowhere/mpirun"})
        self.check_to_mend(checks, "fault tolerance", "FOOTPLATE_MPIRUN names /nowhere/mpirun", "scripts/deps")
        self.check_to_mend(checks, "evaluation", "FOOTPLATE_MPIRUN")

    def test_no_fault_tolerance(self):
        self.check_to_mend(self.examine(fake={"fail": ["loss"]}), "fault tolerance", "no loss with this one", "ULFM")
        self.check_to_mend(self.examine(fake={"loss": {"survivors": 0}}), "fault tolerance", "0 went on")

    def test_reduction(self):
        self.check_to_mend(self.examine(fake={"reduce": {"wrong": 7}}), "all-reduce", "7 sums are wrong", "memtest")
        self.check_to_mend(self.examine(fake={"reduce": {"seconds": 100}}), "all-reduce", "very slow")
        self.check_to_mend(self.examine(fake={"fail": ["reduce"]}), "large reduction", "no reduce with this one")

    def test_products(self):
        found = self.examine()["products"]
        self.assertIn('OpenBLAS 0.3.34 (Zen) takes 1.15 of MKL\'s time for float32 matrices: run.blas = "auto" takes the right one, mkl', found["found"])
        faster = {"mkl_ms": 2, "openblas_ms": 1.2, "ratio": 0.6, "openblas": "OpenBLAS 0.3.34 (SkylakeX)", "automatic": "mkl"}
        found = self.examine(fake={"products": faster})["products"]
        self.assertEqual((found["verdict"], found["values"]), ("good", faster))
        self.assertIn('takes 0.6 of MKL\'s time for float32 matrices: run.blas = "openblas" is right; "auto" takes mkl', found["found"])
        found = self.examine(fake={"products": {"missing": "it cannot be opened"}})["products"]
        self.assertEqual((found["verdict"], found["found"]), ("good", "MKL multiplies float32 matrices; OpenBLAS isn't here to compare with"))
        self.check_to_mend(self.examine(fake={"fail": ["products"]}), "products", "no products with this one", "scripts/deps")

    def test_evaluation(self):
        self.check_to_mend(self.examine(fake={"step": 5}), "evaluation", "didn't get to its end")
        self.check_to_mend(self.examine(fake={"fail": ["run"]}), "evaluation", "no run with this one")
        self.check_to_mend(self.examine(fake={"recorded": 0}), "evaluation", "metrics.jsonl")

    def test_versions(self):
        checks = self.examine(fake={"versions": {"footplate": "0.0.9"}})
        self.check_to_mend(checks, "versions", "0.0.9", "scripts/run")
        env = self.folder / "env-cpu"
        library = {"libtorch_file": f"{env}/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so"}
        self.check_to_mend(self.examine(fake={"versions": library}), "environment", str(env), "scripts/deps")
        env.mkdir()
        (env / "stamp").write_text("x")
        self.assertEqual(self.examine(fake={"versions": library})["environment"]["verdict"], "good")

    def test_runs_that_cannot_be_written(self):
        (self.folder / "file").write_text("")
        checks = self.examine("--quick", env={"FOOTPLATE_RUNS": "/proc/nowhere/runs"})
        self.check_to_mend(checks, "disk", "FOOTPLATE_RUNS")

    def test_bad_options(self):
        self.check(self.footplate("doctor", "--quik"), 2, "did you mean --quick?")
        self.check(self.footplate("doctor", "--elements", "0"), 2, "--elements")
        self.check(self.footplate("doctor", "--elements", "many"), 2, "--elements")
        self.check(self.footplate("doctor", "everything"), 2, "can't read config everything")
        self.check(self.footplate("doctor", "comm.small_timeout_s=never"), 2, "comm.small_timeout_s")
        self.assertEqual(self.asked(), [])

    def test_hosts(self):
        checks = self.examine("--quick", "--host", "n1,n2:4,n3")
        names = ["host n1", "host n2", "host n3", "hosts together", "link n1 - n2", "link n1 - n3", "link n2 - n3", "host deadlines"]
        self.assertEqual(list(checks), [*LOOKED_AT, *TRIED, *names])
        for name in names:
            self.assertEqual(checks[name]["verdict"], "good", checks[name])
        self.assertEqual(checks["host n2"]["values"]["slots"], 4)
        self.assertIn("4 cores, 4 slots; programs and libraries are those of this machine", checks["host n2"]["found"])
        self.assertAlmostEqual(checks["hosts together"]["values"]["gb_per_s"], 1.6)
        self.assertIn("between 3 hosts", checks["hosts together"]["found"])
        self.assertIn("1.25 GB/s, 20 µs one way", checks["link n1 - n3"]["found"])
        self.assertIn("3 hosts start ranks" if all(check["verdict"] != "to mend" for check in checks.values()) else "to mend",
                      self.doctor("--quick", "--host", "n1,n2:4,n3").stdout)

    def test_deadlines_between_hosts(self):
        slow = self.examine("--quick", "--host", "n1,n2", "comm.small_timeout_s=0.02", fake={"together": {"seconds": 1}})
        self.check_to_mend(slow, "host deadlines", "comm.small_timeout_s = ")
        self.assertAlmostEqual(slow["host deadlines"]["values"]["gb_per_s"], 0.016)

    def test_hosts_speak_over_what_the_settings_say(self):
        self.examine("--quick", "--host", "n1,n2", "comm.ports=21000-21063", "comm.network=10.7.0.0/16")
        lines = [line for line in (self.folder / "bin" / "mpirun.log").read_text().splitlines() if "--host" in line]
        self.assertEqual(len(lines), 4, lines)  # each host, both together, the link
        for line in lines:
            self.assertIn("btl_tcp_port_min_v4 21000", line)
            self.assertIn("btl_tcp_if_include 10.7.0.0/16", line)
        nowhere = self.examine("--quick", "--host", "n1,n2", "comm.network=eth99")
        self.check_to_mend(nowhere, "host n1", "starts no process: comm.network: this machine has no interface 'eth99'")
        self.check(self.footplate("doctor", "--host", "n1", "comm.ports=7"), 2, "comm.ports")

    def test_hostfile(self):
        (self.folder / "hosts").write_text("# ours\nn1 slots=2\n\nn2   slots=1 max-slots=8  # old\nn1\n")
        checks = self.examine("--quick", "--hostfile", "hosts")
        self.assertEqual(checks["host n1"]["values"]["slots"], 3)
        self.assertEqual([name for name in checks if name.startswith("link")], ["link n1 - n2"])

    def test_one_host(self):
        checks = self.examine("--quick", "--host", "n1")
        self.assertEqual(list(checks)[-1], "host n1")

    def test_a_host_that_cannot_be_reached(self):
        checks = self.examine("--quick", "--host", "n1,gone,n3")
        self.check_to_mend(checks, "host gone", "Connection refused", "no ssh server listens on gone")
        self.assertEqual([checks[f"host {name}"]["verdict"] for name in ("n1", "n3")], ["good", "good"])
        self.assertIn("between 2 hosts", checks["hosts together"]["found"])
        self.assertEqual(checks["link n1 - n3"]["verdict"], "good")
        for name in ("link n1 - gone", "link gone - n3"):
            self.assertEqual((checks[name]["verdict"], checks[name]["found"]), ("left out", "not checked: see its hosts above"))
        checks = self.examine("--quick", "--host", "gone,n3")
        self.assertEqual(checks["hosts together"]["verdict"], "left out")

    def test_ssh_is_bounded_and_asks_nothing(self):
        self.check_to_mend(self.examine("--quick", "--host", "bare"), "host bare", "-o BatchMode=yes -o ConnectTimeout=10")
        checks = self.examine("--quick", "--host", "bare", env={"PRTE_MCA_plm_ssh_args": "-p 2222"})
        self.check_to_mend(checks, "host bare", "starts no process: -p 2222", "ssh -o BatchMode=yes bare true")

    def test_a_host_with_another_version(self):
        checks = self.examine("--quick", "--host", "n1,n2,n3", fake={"there": {"n2:1": {"mpi": "Open MPI v4.1.4"}}})
        self.check_to_mend(checks, "host n2", "mpi: Open MPI v4.1.4 there, Open MPI v5.0.11 here", "one version on all hosts")
        self.assertEqual(checks["link n1 - n2"]["verdict"], "left out")
        self.assertEqual(checks["link n1 - n3"]["verdict"], "good")

    def test_links(self):
        self.check_to_mend(self.examine("--quick", "--host", "n1,n2", fake={"link": {"gb_per_s": 0.001}}), "link n1 - n2", "very slow",
                           "btl_tcp_if_include")
        checks = self.examine("--quick", "--host", "n1,n2", fake={"fail": ["link"]})
        self.check_to_mend(checks, "link n1 - n2", "nothing gets through: ended with code 1: no link with this one", "firewall")
        self.check_to_mend(self.examine("--quick", "--host", "n1,n2", fake={"together": {"wrong": 3}}), "hosts together", "3 sums are wrong")
        inside = self.examine("--quick", "--host", "n1,localhost", fake={"link": {"hosts": ["n1", "n1"]}})
        self.assertIn("both names are n1: measured inside one host", inside["link n1 - localhost"]["found"])

    def test_many_hosts(self):
        checks = self.examine("--quick", "--host", ",".join(f"n{i}" for i in range(9)))
        links = [name for name in checks if name.startswith("link")]
        self.assertEqual(links, [*(f"link n{i} - n{i + 1}" for i in range(8)), "link n8 - n0"])
        self.assertIn("neighbours in a ring", checks["other links"]["found"])

    def test_bad_hosts(self):
        (self.folder / "hosts").write_text("n1\nn2 slots=many\n")
        (self.folder / "empty").write_text("# none\n")
        for option, value, text in (("--host", "n1,,n2", "a host without a name"), ("--host", "n1:x", "slots of n1 can't be 'x'"),
                                    ("--host", "n1:0", "from 1 to 4096"), ("--host", "-oProxyCommand=x", "begins with '-'"),
                                    ("--host", "n1 n2", "it has ' '"), ("--host", "n1;id", "it has ';'"),
                                    ("--hostfile", "hosts", "hosts:2: slots of n2 can't be 'many'"),
                                    ("--hostfile", "empty", "no host in empty"), ("--hostfile", "/nowhere", "can't read the hostfile")):
            self.check(self.footplate("doctor", f"{option}={value}"), 2, text)
        self.check(self.footplate("doctor", "--host", "n1", "--hostfile", "hosts"), 2, "--hostfile")
        self.assertEqual(self.asked(), [])

    def test_interrupted_at_a_link(self):
        process = subprocess.Popen([FOOTPLATE, "doctor", "--quick", "--host", "n1,n2"], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=self.environment_with(FAKE_DOCTOR=json.dumps({"hang": ["link"]})))
        wait_until(lambda: any(words[0] == "link" for words in self.asked()), "the link")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("interrupted by SIGTERM", err)
        self.assertNotIn("link n1", out)
        self.check_private_folders_are_gone()

    def test_bare_surroundings(self):
        for env in ({"HOME": None}, {"NO_COLOR": "1"}, {"TERM": "dumb", "LC_ALL": "C"}):
            checks = self.examine("--quick", env=env)
            self.assertEqual(checks["fault tolerance"]["verdict"], "good", (env, checks))
        closed = subprocess.run(["sh", "-c", f"{FOOTPLATE} doctor --quick <&- >&-"], cwd=self.folder, env=self.environment, timeout=60,
                                capture_output=True, text=True, check=False)
        self.assertIn(closed.returncode, (0, 1), closed)
        self.assertEqual(closed.stderr, "")

    def test_on_a_terminal(self):
        terminal = pexpect.spawn(FOOTPLATE, ["doctor", "--quick"], cwd=self.folder, env=self.environment, timeout=60)
        terminal.expect("all-reduce")
        terminal.expect(pexpect.EOF)
        terminal.wait()
        self.assertIn(terminal.exitstatus, (0, 1))
        self.assertNotIn(b"\x1b", terminal.before)

    def test_interrupted(self):
        process = subprocess.Popen([FOOTPLATE, "doctor"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment_with(FAKE_DOCTOR=json.dumps({"hang": ["reduce"]})))
        wait_until(lambda: any(words[0] == "reduce" for words in self.asked()), "the reduction")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("interrupted by SIGINT", err)
        self.check_private_folders_are_gone()


if __name__ == "__main__":
    unittest.main(verbosity=2)
