"""How long a typed character takes to be on the screen while the run tells 1,000 lines a second.

A real pseudo-terminal, with a rank that is a fake (tests/console/console_rank.py): no training competes for the cores, as the
subject is the prompt. Every character has its own time, from the moment it is sent until the terminal's line ends in it.
"""

import argparse
import statistics
import sys
import threading
import time

from measure import Limits, ROOT, quantile, report

sys.path.insert(0, str(ROOT / "tests" / "console"))
from terminal import CTRL_C, TerminalCase  # noqa: E402  # pylint: disable=wrong-import-position

LIMIT_MS = 10.0
TEXT = "x = 'the quick brown fox jumps over the lazy dog' "


class Bench(TerminalCase):
    """Only for its folder, its fake rank and its screen."""

    def runTest(self):  # noqa: N802
        """Nothing: measure() is called."""


def latencies(case, rounds, lines_a_second):
    """Milliseconds for each character, and how many lines a second there were."""
    screen = case.attach()
    times, sent = [], 0
    ends = threading.Event()
    began = time.monotonic()

    def flood():
        nonlocal sent
        while lines_a_second and not ends.is_set():
            case.command(event="warn", times=lines_a_second // 20, data={"text": "line {n}"})
            sent += lines_a_second // 20
            time.sleep(max(0.0, began + sent / lines_a_second - time.monotonic()))

    flooding = threading.Thread(target=flood)
    flooding.start()
    for _ in range(rounds):
        for place, character in enumerate(TEXT):
            wanted = TEXT[: place + 1]
            started = time.perf_counter()
            screen.type(character)
            while not screen.screen.display[screen.screen.cursor.y][: screen.screen.cursor.x].endswith(wanted):
                screen.update()
            times.append((time.perf_counter() - started) * 1000)
            time.sleep(0.01)
        screen.type(CTRL_C)
        screen.wait_prompt()
    ends.set()
    flooding.join()
    return times, sent / (time.monotonic() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8, help=f"of {len(TEXT)} characters")
    options = parser.parse_args()
    limits = Limits()
    for lines_a_second in (0, 1000):
        case = Bench()
        case.setUp()
        try:
            case.start_run()
            times, told = latencies(case, options.rounds, lines_a_second)
        finally:
            case.doCleanups()
        print(f"{told:5.0f} lines/s: median {statistics.median(times):.2f} ms, p90 {quantile(times, 0.9):.2f} ms, "
              f"longest {max(times):.1f} ms of {len(times)} characters", flush=True)
        report("prompt", lines_a_second=told, median_ms=statistics.median(times), p90_ms=quantile(times, 0.9),
               max_ms=max(times), characters=len(times), limit_ms=LIMIT_MS)
        limits.at_most(f"the median in ms under {told:.0f} lines/s", statistics.median(times), LIMIT_MS)
    limits.hold()


if __name__ == "__main__":
    main()
