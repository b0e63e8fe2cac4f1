"""The collective engine against what it replaces, over MPI: fused metrics, chunked reductions, the ledger's cost."""

import argparse
import json
import os
import subprocess

from measure import Limits, ROOT, report

LEAST_SPEEDUP, MOST_IN_PIECES, MOST_LEDGER_NS = 2.0, 1.0, 100.0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--millions", type=int, default=100, help="elements of the large reduction, in millions")
    options = parser.parse_args()
    command = [os.environ["FOOTPLATE_BENCH_MPIRUN"], "--bind-to", "none", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1",
               "-n", str(options.ranks), str(ROOT / "build/release/tests/collectives_bench"), str(options.millions)]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    answer = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment, check=False)
    if answer.returncode != 0:
        raise SystemExit(f"collectives_bench failed:\n{answer.stderr[-4000:]}")
    took = json.loads(answer.stdout.splitlines()[-1])
    print(f"4 metrics of 8 data sets: one reduction each {took['each_us']:.0f} us, with a timer per call "
          f"{took['each_with_timer_us']:.0f} us, fused {took['fused_us']:.0f} us")
    print(f"all_reduce of {options.millions} M floats: direct {took['direct_s']:.3f} s, in pieces of a million "
          f"{took['chunked_s']:.3f} s, by the bands {took['bands_s']:.3f} s")
    print(f"ledger, watched: {took['ledger_ns']:.0f} ns of processor time an operation")
    report("collectives", ranks=options.ranks, fused_speedup=took["each_us"] / took["fused_us"],
           fused_speedup_over_timers=took["each_with_timer_us"] / took["fused_us"],
           chunked_over_direct=took["chunked_s"] / took["direct_s"], bands_over_direct=took["bands_s"] / took["direct_s"],
           ledger_ns=took["ledger_ns"])
    limits = Limits()
    limits.at_least("the speed-up by fusing", took["each_us"] / took["fused_us"], LEAST_SPEEDUP)
    limits.at_most("the time in pieces, divided by that of one call", took["chunked_s"] / took["direct_s"], MOST_IN_PIECES)
    limits.at_most("the ledger's ns an operation", took["ledger_ns"], MOST_LEDGER_NS)
    limits.hold()


if __name__ == "__main__":
    main()
