"""What comparing the ranks' state costs the training thread, at 100 million parameters with AdamW and steps of 100 ms: a slice of
it is hashed beside each step. No device, one process. Exit code 1 beyond the limit."""

import argparse
import json
import subprocess

from measure import Limits, ROOT, report

MOST_SHARE = 0.001  # of a step, on the training thread


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, default=100, help="parameters, in millions")
    options = parser.parse_args()
    answer = subprocess.run([str(ROOT / "build/release/tests/sweep_bench"), str(options.millions)], capture_output=True, text=True,
                            timeout=600, check=True)
    took = json.loads(answer.stdout.splitlines()[-1])
    share = took["mean_us"] / 1e3 / took["step_ms"]
    at_once = took["whole_ms"] / took["period"] / took["step_ms"]
    print(f"{took['bytes'] / 1e9:.1f} GB of state, a period of {took['period']} steps of {took['step_ms']:.0f} ms: the training thread "
          f"spends {took['mean_us']:.0f} us a step on its slice (median {took['median_us']:.0f}, at most {took['most_us']:.0f}), "
          f"{100 * share:.3f} % of a step; all at once {took['whole_ms']:.0f} ms, {100 * at_once:.2f} % of the steps")
    print(f"a step with its slice, divided by one without: {took['step_ratio']:.4f}")
    report("sweep", share=share, at_once_share=at_once, **took)
    limits = Limits()
    limits.at_most("the share of a step on the training thread", share, MOST_SHARE)
    limits.hold()


if __name__ == "__main__":
    main()
