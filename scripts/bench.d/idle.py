"""What the idle console and the idle control threads cost a run that trains (configs/kjv.lua, two ranks, or what the options say).

Two figures. Processor time: of the console's process and of every rank's thread named "control", over the time that
nobody asks anything, in per cent of one core. Step time: console and control threads are stopped and let go in blocks
within one run (freeze.py), and the steps of neighbouring blocks are compared.
"""

import argparse
import os
import pathlib
import signal
import time

from measure import Limits, add_run_options, ratio_with_interval, report
import freeze
import harness

LIMIT_PERCENT, LIMIT_HIGH = 0.1, 1.01  # of a core; of a step
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def processor_s(path):
    """Processor time of a process or thread so far: by the scheduler's own nanoseconds where the kernel has them."""
    schedstat = pathlib.Path(path, "schedstat")
    if schedstat.exists():
        return int(schedstat.read_text().split()[0]) / 1e9
    fields = pathlib.Path(path, "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def of_process(pid):
    return sum(processor_s(task) for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


def measure_processor_time(console, controls, seconds):
    """Per cent of a core: the console's process, and each rank's control thread."""
    def reading():
        return [of_process(console), *(processor_s(f"/proc/{pid}/task/{tid}") for pid, tid in controls)]
    before, began = reading(), time.monotonic()
    time.sleep(seconds)
    after, took = reading(), time.monotonic() - began
    return [100 * (b - a) / took for a, b in zip(before, after)]


def switch_in_blocks(console, threads, seconds, block_s):
    """[(begin, end, on)] in the wall clock's seconds."""
    blocks = []
    try:
        for block in range(int(seconds / block_s)):
            on = block % 4 in (0, 3)  # on off off on: a steady drift cancels
            if on:
                os.kill(console, signal.SIGCONT)
                for thread in threads:
                    thread.resume()
            else:
                os.kill(console, signal.SIGSTOP)
                for thread in threads:
                    if not thread.stopped:
                        thread.stop()
            begin = time.time()
            time.sleep(block_s)
            blocks.append((begin, time.time(), on))
    finally:
        os.kill(console, signal.SIGCONT)
        for thread in threads:
            thread.release()
    return blocks


def step_times(blocks, rows):
    """(on, mean step time) of each block, from the metric rows that lie wholly in it; None where there are too few, as
    where the machine stood still for a moment."""
    result = []
    for begin, end, on in blocks:
        inside = [row for row in rows if begin <= row["time"] <= end]
        if len(inside) < 2:
            result.append((on, None))
            continue
        took, steps = inside[-1]["time"] - inside[0]["time"], inside[-1]["step"] - inside[0]["step"]
        result.append((on, took / steps))
    if sum(time is None for _, time in result) > len(result) / 20:
        raise SystemExit("too many blocks hold too few steps: make --block longer")
    return result


def pairs_of(times):
    """(on, off) for each two neighbouring blocks that have a time."""
    for first, second in zip(times[::2], times[1::2]):
        if None not in (first[1], second[1]):
            yield (first[1], second[1]) if first[0] else (second[1], first[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=480, help="of switching in blocks")
    parser.add_argument("--block", type=float, default=0.5, help="seconds of a block")
    parser.add_argument("--quiet", type=float, default=30, help="seconds over which processor time is read")
    add_run_options(parser)
    options = parser.parse_args()
    # Steps a quarter as long as the config's: the machine's own speed drifts within seconds, and short blocks follow it.
    # Metrics and comparisons come as rarely as with the config's.
    assignments = ["train.steps=1000000", "train.batch_size=4", "log.every=80", "log.perf_every=80", "log.detail_every=400", "guard.check_every=400", "train.empty_cache_every=0", "run.threads=1", "eval.mode=off",
                   "ckpt.every=0"]
    with harness.Run([*assignments, *options.setting], ranks=options.ranks, config=options.config, name="bench") as run:
        run.wait_for_step(10).close()
        pids = run.pids()
        console = run.record()["console_pid"]
        controls = [(pid, tid) for pid in pids for tid in freeze.threads_named(pid, "control")]
        if len(controls) != len(pids):
            raise SystemExit(f"expected one control thread on each of {len(pids)} ranks, found {len(controls)}")
        shares = measure_processor_time(console, controls, options.quiet)
        print(f"processor time, % of a core: console {shares[0]:.3f}, control {' '.join(f'{s:.3f}' for s in shares[1:])}, "
              f"together {sum(shares):.3f}", flush=True)
        # Telling blocks apart takes more metrics than idle ones.
        client = harness.Client(run.record()["socket"])
        client.ask("set", changes={"log.every": 1})
        client.close()
        threads = [freeze.Thread(tid) for _, tid in controls]
        blocks = switch_in_blocks(console, threads, options.seconds, options.block)
        harness.wait_until(lambda: run.lines("metrics.jsonl")[-1]["time"] > blocks[-1][1], 60, "the last metrics")
        rows = [row for row in run.lines("metrics.jsonl") if "train/loss" in row]
        client = harness.Client(run.record()["socket"])
        run.end(client)
    pairs = list(pairs_of(step_times(blocks, rows)))
    ratio, low, high = ratio_with_interval(pairs)
    print(f"step time with / without console and control: {ratio:.4f} "
          f"(95 % interval {low:.4f} to {high:.4f}, {len(pairs)} pairs)")
    report("idle", console_percent=shares[0], control_percent=shares[1:], together_percent=sum(shares), ratio=ratio, low=low,
           high=high, pairs=len(pairs), limit_percent=LIMIT_PERCENT, limit_high=LIMIT_HIGH)
    limits = Limits()
    limits.at_most("their share of a core in %", sum(shares), LIMIT_PERCENT)
    limits.at_most("the upper end of the ratio", high, LIMIT_HIGH)
    limits.hold()


if __name__ == "__main__":
    main()
