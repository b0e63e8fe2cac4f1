"""The collective engine against what it replaces, over MPI: fused metrics, reductions in pieces and by shares, the
ledger's cost."""

import argparse
import json
import os
import statistics
import subprocess

from measure import Limits, ROOT, report

LEAST_SPEEDUP, MOST_IN_PIECES, MOST_LEDGER_NS, MOST_BY_SHARES = 2.0, 1.0, 100.0, 1.1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--millions", type=int, default=100, help="elements of the large reduction, in millions")
    parser.add_argument("--starts", type=int, default=5, help="of the programs: where their memory lies is another each time")
    options = parser.parse_args()
    command = [os.environ["FOOTPLATE_BENCH_MPIRUN"], "--bind-to", "none", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1",
               "-n", str(options.ranks), str(ROOT / "build/release/tests/collectives_bench"), str(options.millions)]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    starts = []
    for _ in range(options.starts):
        answer = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment, check=False)
        if answer.returncode != 0:
            raise SystemExit(f"collectives_bench failed:\n{answer.stderr[-4000:]}")
        starts.append(json.loads(answer.stdout.splitlines()[-1]))
    for one in starts:
        one["by_shares"] = (one["scatter_s"] + one["gather_s"]) / one["whole_s"]
    took = {name: statistics.median(one[name] for one in starts) for name in starts[0]}
    print(f"4 metrics of 8 data sets: one reduction each {took['each_us']:.0f} us, with a timer per call "
          f"{took['each_with_timer_us']:.0f} us, fused {took['fused_us']:.0f} us")
    print(f"all_reduce of {options.millions} M floats: direct {took['direct_s']:.3f} s, in pieces of a million "
          f"{took['chunked_s']:.3f} s, by the bands {took['bands_s']:.3f} s")
    print(f"by shares: reduce_scatter {took['scatter_s']:.3f} s, all_gather {took['gather_s']:.3f} s, after an all_reduce of "
          f"{took['whole_s']:.3f} s each time: {took['by_shares']:.2f} "
          f"({', '.join(format(one['by_shares'], '.2f') for one in starts)})")
    print(f"ledger, watched: {took['ledger_ns']:.0f} ns of processor time an operation")
    report("collectives", ranks=options.ranks, fused_speedup=took["each_us"] / took["fused_us"],
           fused_speedup_over_timers=took["each_with_timer_us"] / took["fused_us"],
           chunked_over_direct=took["chunked_s"] / took["direct_s"], bands_over_direct=took["bands_s"] / took["direct_s"],
           shares_over_whole=took["by_shares"], ledger_ns=took["ledger_ns"])
    limits = Limits()
    limits.at_least("the speed-up by fusing", took["each_us"] / took["fused_us"], LEAST_SPEEDUP)
    limits.at_most("the time in pieces, divided by that of one call", took["chunked_s"] / took["direct_s"], MOST_IN_PIECES)
    limits.at_most("reduce_scatter and all_gather, divided by one all_reduce", took["by_shares"], MOST_BY_SHARES)
    limits.at_most("the ledger's ns an operation", took["ledger_ns"], MOST_LEDGER_NS)
    limits.hold()


if __name__ == "__main__":
    main()
