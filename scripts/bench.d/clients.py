"""What eight clients that follow ten events a second cost a run that trains (configs/kjv.lua, two ranks, or what the options say).

Processor time of the console's process and of every rank's control thread, in per cent of one core, while the clients follow;
and the step time with and without them, in blocks within one run. The clients themselves are one process at idle priority that
reads once a second: what it costs itself, on cores that the ranks keep busy, isn't the question.
"""

import argparse
import subprocess
import sys
import time

from measure import Limits, add_run_options, ratio_with_interval, report
import blocks
import freeze
import harness
import idle

LIMIT_PERCENT, LIMIT_HIGH = 0.5, 1.01  # of a core, with ten events a second; of a step
FOLLOWER = """
import json, os, select, socket, sys
path, count = sys.argv[1], int(sys.argv[2])
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
connections, events = [], 0
def read():
    global events
    for connection in connections:
        try:
            events += connection.recv(1 << 20, socket.MSG_DONTWAIT).count(b'"type":"event"')
        except BlockingIOError:
            pass

while True:
    wished = select.select([0], [], [], 1)[0]
    read()
    if not wished:
        continue
    wish = os.read(0, 1)
    if not wish:
        sys.exit()
    for connection in connections:
        connection.close()
    connections = [socket.socket(socket.AF_UNIX) for _ in range(count if wish == b"+" else 0)]
    for connection in connections:
        connection.connect(path)
        connection.sendall(b'{"id": 1, "op": "subscribe", "topics": ["*"]}\\n')
    print(events, flush=True)
    events = 0
"""


class Followers:
    """One process for all the time: starting one would disturb the steps that are compared."""

    def __init__(self, path, count):
        self.on, self.events = False, 0
        self.process = subprocess.Popen([sys.executable, "-c", FOLLOWER, path, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def turn(self, on):
        if self.on != on:
            self.on = on
            self.process.stdin.write(b"+" if on else b"-")
            self.process.stdin.flush()
            self.events = int(self.process.stdout.readline())

    def start(self):
        self.turn(True)

    def stop(self):
        self.turn(False)

    def end(self):
        self.process.communicate()


def steps_per_s(client, seconds=5):
    begin, first = time.monotonic(), client.ask("status")["step"]
    time.sleep(seconds)
    return (client.ask("status")["step"] - first) / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=480, help="of following and not, in blocks")
    parser.add_argument("--block", type=float, default=0.5, help="seconds of a block")
    parser.add_argument("--quiet", type=float, default=30, help="seconds over which processor time is read")
    parser.add_argument("--clients", type=int, default=8)
    add_run_options(parser)
    options = parser.parse_args()
    # Steps short enough for ten events a second, and for short blocks (idle.py).
    assignments = ["train.steps=1000000", "train.batch_size=4", "run.threads=1", "eval.mode=off", "ckpt.every=0",
                   "guard.check_every=400", "train.empty_cache_every=0"]
    with harness.Run([*assignments, *options.setting], ranks=options.ranks, config=options.config, name="bench") as run:
        client = run.wait_for_step(10)
        pids = run.pids()
        console = run.record()["console_pid"]
        controls = [(pid, tid) for pid in pids for tid in freeze.threads_named(pid, "control")]
        every = max(1, int(steps_per_s(client) / 10))
        client.ask("set", changes={"log.every": every, "log.perf_every": every})
        client.close()
        followers = Followers(run.record()["socket"], options.clients)
        shares_without = idle.measure_processor_time(console, controls, options.quiet)
        followers.start()
        shares = idle.measure_processor_time(console, controls, options.quiet)
        followers.stop()
        per_s = followers.events / options.clients / options.quiet
        print(f"{options.clients} clients, {per_s:.1f} events/s each; processor time, % of a core: console {shares[0]:.3f}, "
              f"control {' '.join(f'{s:.3f}' for s in shares[1:])}, together {sum(shares):.3f} "
              f"(without clients {sum(shares_without):.3f})", flush=True)
        times = blocks.alternate(options.seconds, options.block, followers.start, followers.stop)
        rows = blocks.metric_rows(run, times[-1][1])
        followers.end()
        blocks.stop(run)
    pairs = list(idle.pairs_of(idle.step_times(times, rows)))
    ratio, low, high = ratio_with_interval(pairs)
    print(f"step time with / without {options.clients} clients: {ratio:.4f} (95 % interval {low:.4f} to {high:.4f}, {len(pairs)} pairs)")
    report("clients", clients=options.clients, events_per_s=per_s, console_percent=shares[0], control_percent=shares[1:],
           together_percent=sum(shares), without_percent=sum(shares_without), ratio=ratio, low=low, high=high, pairs=len(pairs),
           limit_percent=LIMIT_PERCENT, limit_high=LIMIT_HIGH)
    limits = Limits()
    limits.at_most("their share of a core in %", sum(shares), LIMIT_PERCENT)
    limits.at_most("the upper end of the ratio", high, LIMIT_HIGH)
    limits.hold()


if __name__ == "__main__":
    main()
