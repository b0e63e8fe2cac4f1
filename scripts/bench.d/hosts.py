"""Two hosts of one rank each, which are namespaces of this machine (tests/hosts/lab.py): from an order sent over the socket to
`applied` on both, at steps of 5, 50 and 200 ms; and what the idle console, the control threads and those that watch the other host
cost, in per cent of a core.

The cables between the hosts have no delay of their own. Each rank has one thread: the hosts share the machine's cores.
"""

import argparse
import pathlib
import random
import statistics
import sys
import time

from measure import Limits, quantile, report
import idle

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "hosts"))
import host_run  # noqa: E402
import lab  # noqa: E402
from leftovers import marked  # noqa: E402

MARGIN_MS, IDLE_PERCENT, WATCH_PERCENT = 3, 0.1, 0.05
WATCHING = ("hosts", "fence")  # threads of a rank that only several hosts have


def begin(hosts, step_ms):
    return host_run.HostRun(hosts, "--host", "h1,h2", ranks=None,
                            assignments=[f"model.step_ms={step_ms}", "train.steps=1000000", "log.every=100", "run.threads=1"])


def latencies_of(hosts, step_ms, orders):
    """Milliseconds."""
    moment = random.Random(step_ms)
    with begin(hosts, step_ms) as run:
        client = run.wait_for_step(10)
        latencies = []
        for order in range(orders):
            time.sleep(moment.uniform(0, 2 * step_ms / 1000))
            sent = time.monotonic()
            answer = client.ask("set", changes={"log.every": 100 + (order + 1) % 2})
            latencies.append((time.monotonic() - sent) * 1000)
            if answer["state"] != "applied" or answer["applied"]["ranks"] != 2:
                raise SystemExit(f"order {order} became {answer}")
        run.end(client)
    return latencies


def idle_percent(hosts, seconds):
    """Of a core: the console's process, the ranks' control threads, and their threads that watch the other hosts."""
    with begin(hosts, 50) as run:
        client = run.wait_for_step(10)
        pids = {pid: pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in marked(f"FOOTPLATE_TEST_MARK={run.mark}")}
        [console] = [pid for pid, name in pids.items() if name.startswith("footplate-cons")]
        ranks = [pid for pid, name in pids.items() if name.startswith("footplate-rank")]
        named = [((task / "comm").read_text().strip(), (pid, int(task.name)))
                 for pid in ranks for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
        threads = [(name, thread) for name, thread in named if name in ("control", *WATCHING)]
        if len(threads) != 2 * (1 + len(WATCHING)):
            raise SystemExit(f"threads: {threads} of {pids}")
        of_console, *found = idle.measure_processor_time(console, [thread for _, thread in threads], seconds)
        run.end(client)
    of = {kind: [percent for (name, _), percent in zip(threads, found) if name in kind] for kind in (("control",), WATCHING)}
    return of_console, of[("control",)], of[WATCHING]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    lab.check_possible()
    limits = Limits()
    with lab.Lab("h1", "h2") as hosts:
        for step_ms in (5, 50, 200):
            found = latencies_of(hosts, step_ms, options.orders)
            median, p90 = statistics.median(found), quantile(found, 0.9)
            print(f"steps of {step_ms} ms: order to applied on two hosts {median:.1f} ms, p90 {p90:.1f}, most {max(found):.1f}", flush=True)
            report("hosts", step_ms=step_ms, median_ms=median, p90_ms=p90, max_ms=max(found), orders=len(found), limit_ms=step_ms + MARGIN_MS)
            limits.at_most(f"the median at steps of {step_ms} ms", median, step_ms + MARGIN_MS)
        console, controls, watching = idle_percent(hosts, options.seconds)
        print(f"idle: console {console:.3f} % of a core, control threads {', '.join(f'{one:.3f}' for one in controls)} %, threads that watch "
              f"the other host {', '.join(f'{one:.3f}' for one in watching)} %")
        report("hosts", console_percent=console, control_percent=controls, watch_percent=watching, limit_percent=IDLE_PERCENT,
               watch_limit_percent=WATCH_PERCENT)
        limits.at_most("the idle console and control threads, % of a core", console + sum(controls), IDLE_PERCENT)
        limits.at_most("the threads that watch the other host, % of a core", sum(watching), WATCH_PERCENT)
    limits.hold()


if __name__ == "__main__":
    main()
