"""What eight clients that follow ten events a second cost a run that trains (configs/kjv.lua, two ranks).

Processor time of the console's process and of every rank's control thread, in per cent of one core, while the clients follow;
and the step time with and without them, in blocks within one run. The clients themselves are a process of their own at idle
priority; its processor time doesn't count.
"""

import argparse
import subprocess
import sys
import time

from measure import ratio_with_interval, report
import blocks
import freeze
import harness
import idle

FOLLOWER = """
import json, os, select, socket, sys
path, count = sys.argv[1], int(sys.argv[2])
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
connections, events = [], 0
for _ in range(count):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    connection.sendall(b'{"id": 1, "op": "subscribe", "topics": ["*"]}\\n')
    connections.append(connection)
print("follow", flush=True)
while True:
    for connection in select.select([sys.stdin, *connections], [], [])[0]:
        if connection is sys.stdin:
            print(events, flush=True)
            sys.exit()
        events += connection.recv(1 << 16).count(b'"type":"event"')
"""


class Followers:
    def __init__(self, path, count):
        self.path, self.count, self.process, self.events = path, count, None, 0

    def start(self):
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, "-c", FOLLOWER, self.path, str(self.count)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
            self.process.stdout.readline()

    def stop(self):
        if self.process is not None:
            self.events = int(self.process.communicate("\n")[0])
            self.process = None


def steps_per_s(client, seconds=5):
    begin, first = time.monotonic(), client.ask("status")["step"]
    time.sleep(seconds)
    return (client.ask("status")["step"] - first) / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=480, help="of following and not, in blocks")
    parser.add_argument("--block", type=float, default=3, help="seconds of a block")
    parser.add_argument("--quiet", type=float, default=30, help="seconds over which processor time is read")
    parser.add_argument("--clients", type=int, default=8)
    options = parser.parse_args()
    # Steps short enough for ten events a second on two cores.
    assignments = ["train.steps=1000000", "train.batch_size=14", "run.threads=1", "eval.mode=off", "ckpt.every=0"]
    with harness.Run(assignments, config="kjv", name="bench") as run:
        client = run.wait_for_step(10)
        pids = run.pids()
        console = run.record()["console_pid"]
        controls = [(pid, tid) for pid in pids for tid in freeze.threads_named(pid, "control")]
        every = max(1, int(steps_per_s(client) / 10))
        client.ask("set", changes={"log.every": every})
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
        blocks.stop(run)
    pairs = list(idle.pairs_of(idle.step_times(times, rows)))
    ratio, low, high = ratio_with_interval(pairs)
    print(f"step time with / without {options.clients} clients: {ratio:.4f} (95 % interval {low:.4f} to {high:.4f}, {len(pairs)} pairs)")
    report("clients", clients=options.clients, events_per_s=per_s, console_percent=shares[0], control_percent=shares[1:],
           together_percent=sum(shares), without_percent=sum(shares_without), ratio=ratio, low=low, high=high, pairs=len(pairs),
           limit_percent=0.5, limit_high=1.01)


if __name__ == "__main__":
    main()
