"""The kernels for processors beside LibTorch's own, forward and backward on one thread. No run, no device. Exit code 1 beyond the
limits: GELU in at most 0.6 of the time; attention under bf16 not slower for any length.
Products by OpenBLAS (run.blas) beside those by MKL have no limit: on some processors it is faster, on others slower."""

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
        kind = took["kernel"].split()[0]
        print(f"{took['kernel']}: {took['ours_ms']:.2f} ms, LibTorch's {took['theirs_ms']:.2f} ms: {took['ratio']:.2f}")
        figures[took["kernel"].replace(" ", "_")] = float(took["ratio"])
        if kind in LIMITS:  # which library has the faster products is the processor's matter
            limits.at_most(f"the ratio of {took['kernel']}", took["ratio"], LIMITS[kind])
    report("kernels", instructions=machine["instructions"], **figures)
    limits.hold()


if __name__ == "__main__":
    main()
