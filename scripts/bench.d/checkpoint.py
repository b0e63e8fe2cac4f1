"""How fast a rank saves and loads a checkpoint of 1.2 GB, fsync, SHA-256 and reading back included, beside a plain file of the same
bytes; and how much memory loading takes besides the state. Exit code 1 beyond the limits."""

import argparse
import json
import shutil
import subprocess
import tempfile

from measure import Limits, ROOT, ratio_with_interval, report

LEAST_SPEED, MOST_MEMORY = 0.8, 64 << 20


def did(what, folder, millions):
    answer = subprocess.run([str(ROOT / "build/release/tests/checkpoint_bench"), what, folder, str(millions)], capture_output=True,
                            text=True, timeout=900, check=False)
    if answer.returncode != 0:
        raise SystemExit(f"checkpoint_bench {what} failed:\n{answer.stderr[-4000:]}")
    return json.loads(answer.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, default=100, help="parameters, in millions")
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--folder", help="where to write; a temporary one")
    options = parser.parse_args()
    writing, reading, memory = [], [], []
    for pair in range(options.pairs):
        folder = tempfile.mkdtemp(prefix="fp-bench-", dir=options.folder)
        took = {}
        for what in ("save", "load", "write", "read") if pair % 2 else ("write", "read", "save", "load"):
            took[what] = did(what, folder, options.millions)
        shutil.rmtree(folder)
        gigabytes = {what: one["bytes"] / one["seconds"] / 1e9 for what, one in took.items()}
        writing.append((gigabytes["save"], gigabytes["write"]))
        reading.append((gigabytes["load"], gigabytes["read"]))
        memory.append(took["load"]["more_memory"])
        print(f"pair {pair + 1}: saved at {gigabytes['save']:.2f} GB/s, a plain file at {gigabytes['write']:.2f}; loaded at "
              f"{gigabytes['load']:.2f}, a plain file at {gigabytes['read']:.2f}", flush=True)
    (save, _, save_high), (load, _, load_high) = ratio_with_interval(writing), ratio_with_interval(reading)
    print(f"saving {save:.2f} and loading {load:.2f} of a plain file's speed; loading takes {max(memory) / 2**20:.1f} MiB besides the state")
    report("checkpoint", pairs=options.pairs, save=save, load=load, load_memory_mib=max(memory) / 2**20)
    limits = Limits()
    limits.at_least("the speed of saving, divided by a plain file's", save, LEAST_SPEED, save_high)
    limits.at_least("the speed of loading, divided by a plain file's", load, LEAST_SPEED, load_high)
    limits.at_most("the bytes that loading takes besides the state", max(memory), MOST_MEMORY)
    limits.hold()


if __name__ == "__main__":
    main()
