"""How a peer starts its own ranks: the program again, once for each."""

import argparse
import os
import subprocess
import sys
import tempfile


def run(parser, train, **numbers):
    """Parses the options, whole numbers with these defaults among them (`ranks` and `threads` are needed). Calls
    train(options, rank) in a process for each rank; `options.store` is the file by which they meet. Ends the program."""
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    options = parser.parse_args()
    rank = os.environ.get("DDP_RANK")
    if rank is not None:
        sys.exit(train(options, int(rank)))
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, *sys.argv, "--store", f"{folder}/store"],
                                  env={**os.environ, "DDP_RANK": str(rank), "OMP_NUM_THREADS": str(options.threads)})
                 for rank in range(options.ranks)]
        sys.exit(max(process.wait() for process in ranks))
