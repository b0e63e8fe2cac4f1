"""Checkpoints of 100 million parameters (1.2 GB of state) written beside the training of two ranks: how long training waits, against
a memcpy of as many bytes; how long steps take meanwhile; what a save in every 50 steps leaves of a run's pace. Beside it how long
PyTorch's dcp.async_save blocks for the same state. Exit code 1 beyond the limits."""

import argparse
import ctypes
import mmap
import os
import statistics
import time

from measure import Limits, ROOT, answer_of_peer, ratio_with_interval, report
import harness

SKIP = 10
LIMITS = {"waited": 1.2, "step": 1.05, "pace": 0.98}


def memcpy_s(count, repeats=7):
    """Between buffers whose pages are there."""
    buffers = [mmap.mmap(-1, count) for _ in range(2)]
    addresses = [ctypes.addressof(ctypes.c_char.from_buffer(buffer)) for buffer in buffers]
    for address in addresses:
        ctypes.memset(address, 1, count)
    took = []
    for _ in range(repeats):
        start = time.perf_counter()
        ctypes.memmove(addresses[0], addresses[1], count)
        took.append(time.perf_counter() - start)
    return statistics.median(took)


class Trained:
    """A run of the synthetic task, which computes its gradients on the processor: seconds of each step, and its saves."""

    def __init__(self, options, every):
        steps = SKIP + 2 * options.every
        with harness.Run([f"model.elements={options.parameters}", "model.step_ms=0", "train.batch_size=4", f"train.steps={steps + 1}",
                          "run.threads=1", "run.device=cpu", "data.workers=0", "log.every=1", f"ckpt.every={every}", "ckpt.keep=1",
                          "guard.check_every=0", *options.setting], name="bench") as run:
            if run.finish(1800) != 0:
                raise SystemExit(f"footplate run failed:\n{run.output()}")
            self.at = {row["step"]: row["time"] for row in run.lines("metrics.jsonl") if "train/loss" in row}
            events = [event for event in run.lines("events.jsonl") if event["topic"] == "ckpt"]
        self.saves = [event["data"] for event in events if event["data"]["step"] < steps]
        self.pace = (steps - SKIP) / (self.at[steps] - self.at[SKIP])

    def step_s(self, step):
        return self.at[step] - self.at[step - 1]

    def steps_beside(self, save):
        """The steps that began and ended while it was written, and as many before it."""
        start = self.at[save["step"]] + save["waited_s"]
        last = max((step for step, at in self.at.items() if at <= start + save["seconds"] - save["waited_s"]), default=save["step"])
        beside = list(range(save["step"] + 2, last + 1))
        return beside, list(range(max(save["step"] - max(len(beside), 10), SKIP) + 1, save["step"] + 1))


def listed(saves, what):
    return ", ".join(f"{save[what]:.3f}" for save in saves)


def dcp_blocked_s(options):
    command = [os.environ["FOOTPLATE_BENCH_PYTHON"], str(ROOT / "tests" / "peers" / "async_save.py"), str(options.parameters)]
    return answer_of_peer(command)["blocked_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=int, default=100_000_000)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--setting", action="append", default=[], help="one more, KEY=VALUE")
    options = parser.parse_args()
    pairs, waited, ratios, written = [], [], [], []
    for pair in range(options.pairs):
        runs = {every: Trained(options, every) for every in sorted((0, options.every), reverse=pair % 2)}
        saved = runs[options.every]
        if not saved.saves or any("waited_s" not in save for save in saved.saves):
            raise SystemExit(f"the saves weren't beside training: {saved.saves}")
        pairs.append((saved.pace, runs[0].pace))
        waited += [save["waited_s"] for save in saved.saves]
        written += [save["seconds"] for save in saved.saves]
        for save in saved.saves:
            beside, before = saved.steps_beside(save)
            if beside:
                ratios.append(statistics.median(map(saved.step_s, beside)) / statistics.median(map(saved.step_s, before)))
        print(f"pair {pair + 1}: {saved.pace:.3f} steps/s with saves, {runs[0].pace:.3f} without; training waited "
              f"{listed(saved.saves, 'waited_s')} s, written in {listed(saved.saves, 'seconds')} s", flush=True)
    copied = memcpy_s(12 * options.parameters)
    blocked = dcp_blocked_s(options)
    pace, low, high = ratio_with_interval(pairs)
    figures = {"waited_s": statistics.median(waited), "memcpy_s": copied, "waited_of_memcpy": statistics.median(waited) / copied,
               "written_s": statistics.median(written), "pace": pace, "dcp_blocked_s": blocked,
               "waited_of_dcp": statistics.median(waited) / blocked}
    limits = Limits()
    if ratios:
        figures["step_while_written"] = statistics.median(ratios)
        limits.at_most("the ratio of a step while a checkpoint is written", figures["step_while_written"], LIMITS["step"])
    print(f"training waits {figures['waited_s']:.3f} s, {figures['waited_of_memcpy']:.2f} of a memcpy ({copied:.3f} s) and "
          f"{figures['waited_of_dcp']:.2f} of dcp.async_save ({blocked:.3f} s); pace {pace:.3f} of a run without saves")
    limits.at_most("the ratio of waiting to a memcpy", figures["waited_of_memcpy"], LIMITS["waited"])
    limits.at_least("the ratio of the pace with saves", pace, LIMITS["pace"], high)
    report("save", pairs=options.pairs, parameters=options.parameters, **figures)
    limits.hold()


if __name__ == "__main__":
    main()
