"""Reductions in two levels (comm.hierarchy) beside those of all ranks at once, on hosts that are namespaces of this machine
(tests/hosts/lab.py): two hosts of two ranks and three of two, over links of 1 Gbit/s, 10 Gbit/s and without a limit.

Each start measures both in alternation. What counts is the median over the starts of the time in one level divided by that in two.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from measure import Limits, report

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "hosts"))
import lab  # noqa: E402

LINKS_MBIT = (1000, 10000, 0)  # 0: as fast as the machine
LAYOUTS = (["h1:2", "h2:2"], ["h1:2", "h2:2", "h3:2"])
SIZES = ((1_000_000, 15), (16_000_000, 5))  # elements: a bucket, and a large tensor; rounds of a start
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather")
# At least, of the large tensor. Without a limit the ranks share two cores, and times vary by a quarter.
WANTED = {1000: {"all_reduce": 1.3, "reduce_scatter": 1.5, "all_gather": 1.5},
          10000: {"all_reduce": 1.0, "reduce_scatter": 1.0, "all_gather": 1.0},
          0: {"all_reduce": 0.8, "reduce_scatter": 0.9, "all_gather": 0.9}}


def limit_links(hosts, megabits):
    for host in hosts.hosts:
        hosts.on(host, "tc", "qdisc", "del", "dev", "eth0", "root", check=False)
        if megabits:
            hosts.on(host, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{megabits}mbit", "burst", "256k", "latency", "50ms")


def measure(hosts, places, elements, rounds):
    ranks = sum(int(place.split(":")[1]) for place in places)
    variables = {"FOOTPLATE_TEST_LAB": str(hosts.folder), "PRTE_MCA_plm_ssh_agent": str(ROOT / "tests" / "hosts" / "agent.py")}
    done = subprocess.run([*hosts.inside("h1"), os.environ["FOOTPLATE_BENCH_MPIRUN"], "--allow-run-as-root", "--host", ",".join(places),
                           "-n", str(ranks), "--with-ft", "ulfm", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
                           "--mca", "coll", "^han", "--mca", "btl_tcp_if_include", "10.77.0.0/24", "--prtemca", "prte_if_include", "10.77.0.0/24",
                           str(ROOT / "build/release/tests/hierarchy_bench"), str(elements), str(rounds)],
                          env={**os.environ, **variables}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=3)
    options = parser.parse_args()
    lab.check_possible()
    limits = Limits()
    with lab.Lab("h1", "h2", "h3") as hosts:
        for megabits in LINKS_MBIT:
            limit_links(hosts, megabits)
            link = f"{megabits} Mbit/s" if megabits else "no limit"
            for places in LAYOUTS:
                for elements, rounds in SIZES:
                    starts = [measure(hosts, places, elements, rounds) for _ in range(options.starts)]
                    for operation in OPERATIONS:
                        flat, levels = ([one[f"{operation}_{way}_s"] for one in starts] for way in ("flat", "two_levels"))
                        ratio = statistics.median(one / other for one, other in zip(flat, levels))
                        print(f"{link}, {' '.join(places)}, {operation} of {elements} floats: {statistics.median(flat) * 1000:.4g} ms in one level, "
                              f"{statistics.median(levels) * 1000:.4g} in two: {ratio:.2f}", flush=True)
                        report("hierarchy", megabits=megabits, places=places, operation=operation, elements=elements,
                               flat_s=flat, two_levels_s=levels, ratio=ratio)
                        if elements == SIZES[-1][0]:
                            limits.at_least(f"{operation} over {link} on {len(places)} hosts", ratio, WANTED[megabits][operation])
    limits.hold()


if __name__ == "__main__":
    main()
