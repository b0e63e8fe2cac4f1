"""How long steps wait for data whose loading costs half a step: one rank with one thread, and a core to spare."""

import argparse

from measure import Limits, ROOT, report
import harness

PLUGIN = ROOT / "build" / "release" / "tasks" / "busy_load.so"
LIMIT = 0.02  # of a step, with two workers


def waiting(options, workers):
    """The share of a step that is spent waiting for data, and how long a step takes, in ms."""
    assignments = [f"run.task=plugin:{PLUGIN}", f"train.steps={options.steps}", "run.threads=1", "eval.every=0", "ckpt.every=0",
                   *[f"log.{kind}={options.steps // 4}" for kind in ("every", "perf_every", "detail_every")], f"data.workers={workers}", f"task.step_ms={options.step_ms}",
                   f"task.load_ms={options.step_ms / 2}"]
    with harness.Run(assignments, ranks=1, config="synthetic", name="bench") as run:
        if run.finish(300) != 0:
            raise SystemExit(f"the run failed:\n{run.output()}")
        rows = [row for row in run.lines("metrics.jsonl") if "perf/data_ms" in row][1:]
    step = sum(row["perf/step_ms"] for row in rows) / len(rows)
    return sum(row["perf/data_ms"] for row in rows) / len(rows) / step, step


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--step-ms", type=float, default=20)
    options = parser.parse_args()
    found = {}
    for workers in (0, 1, 2):
        found[workers] = waiting(options, workers)
        share, step = found[workers]
        print(f"data.workers = {workers}: {100 * share:.2f} % of a step of {step:.1f} ms is spent waiting for data", flush=True)
    report("loader", **{f"waiting_{workers}": share for workers, (share, _) in found.items()},
           **{f"step_ms_{workers}": step for workers, (_, step) in found.items()}, limit=LIMIT, steps=options.steps)
    limits = Limits()
    limits.at_most("the share of a step with two workers", found[2][0], LIMIT)
    limits.hold()


if __name__ == "__main__":
    main()
