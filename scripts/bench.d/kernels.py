"""The kernels for processors beside LibTorch's own, forward and backward on one thread. No run, no device. Exit code 1 beyond the
limits: GELU in at most 0.6 of the time, attention under bf16 not slower for any length."""

import json
import subprocess

from measure import Limits, ROOT, report

# Of LibTorch's time. For long sequences attention is LibTorch's: what is above 1 there is noise.
LIMITS = {"gelu": 0.6, "attention": 1.05}


def main():
    answer = subprocess.run([str(ROOT / "build/release/tests/host_kernels_bench")], capture_output=True, text=True, timeout=600, check=True)
    machine, *kernels = map(json.loads, answer.stdout.splitlines())
    print(f"instructions: {machine['instructions']}{', AMX' if machine['bf16_tiles'] else ''}")
    figures, limits = {}, Limits()
    for took in kernels:
        limit = LIMITS[took["kernel"].split()[0]]
        print(f"{took['kernel']}: {took['ours_ms']:.2f} ms, LibTorch's {took['theirs_ms']:.2f} ms: {took['ratio']:.2f} (at most {limit:g})")
        figures[took["kernel"].replace(" ", "_")] = float(took["ratio"])
        limits.at_most(f"the ratio of {took['kernel']}", took["ratio"], limit)
    report("kernels", instructions=machine["instructions"], **figures)
    limits.hold()


if __name__ == "__main__":
    main()
