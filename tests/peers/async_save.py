#!/usr/bin/env python3
"""How long PyTorch's dcp.async_save keeps its caller from going on, for so many parameters with AdamW's moments in fp32. The
second of two saves: the first makes what later ones use again."""

import json
import pathlib
import sys
import tempfile
import time

import torch
import torch.distributed.checkpoint


def main():
    count = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        state = {name: torch.ones(count) for name in ("model", "exp_avg", "exp_avg_sq")}
        for save in range(2):
            start = time.perf_counter()
            future = torch.distributed.checkpoint.async_save(state, checkpoint_id=str(pathlib.Path(folder) / str(save)), no_dist=True)
            blocked = time.perf_counter() - start
            future.result()
        print(json.dumps({"blocked_s": blocked, "written_s": time.perf_counter() - start}))


main()
