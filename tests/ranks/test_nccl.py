#!/usr/bin/env python3
"""NCCL's settings where there is no device: what the ranks set for it, what counts for more, and what is refused."""

import pathlib
import tempfile

from harness import Run, main

LONG = ["train.steps=100000", "model.step_ms=5"]


def log_of(run, rank):
    return (pathlib.Path(run.directory) / "log" / f"rank-{rank}.log").read_text()


def test_every_rank_sets_what_the_settings_say():
    environment = {"NCCL_IB_TIMEOUT": "22", "NCCL_TIMEOUT": "1800", "NCCL_IB_PCI_RELAXED_ORDERING": "1"}
    with Run([*LONG, "nccl.buffer_bytes=8MiB", "nccl.ib_timeout=18"], env=environment) as run:
        run.wait_for_step()
        config = run.read_json("config-1.json")
        assert config["nccl.ib_timeout"] == {"value": 22, "source": "environment"}, config["nccl.ib_timeout"]
        assert config["nccl.buffer_bytes"] == {"value": 8 << 20, "source": "command line"}, config["nccl.buffer_bytes"]
        said = run.output()
        assert "NCCL_IB_TIMEOUT=22 in the environment overrides nccl.ib_timeout = 18 (command line)" in said, said
        assert "NCCL_TIMEOUT=1800 in the environment does nothing here" in said and "comm.timeout_s" in said, said
        for rank in range(2):
            log = log_of(run, rank)
            assert "NCCL's NCCL_BUFFSIZE=8388608 (nccl.buffer_bytes, command line)" in log, log
            assert "NCCL's NCCL_IB_TIMEOUT" not in log and "NCCL_IB_PCI_RELAXED_ORDERING=1" in log, log


def test_nccls_own_file_stays_with_nccl():
    # In /tmp, not in $TMPDIR: a long path would be told with its end cut off.
    with tempfile.NamedTemporaryFile("w", suffix=".conf", dir="/tmp") as file:
        file.write("NCCL_BUFFSIZE=4194304\nNCCL_DEBUG_FILE=/dev/null\n")
        file.flush()
        with Run([*LONG, "nccl.buffer_bytes=8MiB", "nccl.ib_timeout=18"], env={"NCCL_CONF_FILE": file.name}) as run:
            run.wait_for_step()
            config = run.read_json("config-1.json")
            assert config["nccl.buffer_bytes"] == {"value": 4 << 20, "source": f"environment ({file.name})"}, config["nccl.buffer_bytes"]
            assert f"NCCL_BUFFSIZE=4194304 in {file.name} overrides nccl.buffer_bytes = 8388608 (command line)" in run.output()
            for rank in range(2):
                log = log_of(run, rank)
                assert f"NCCL's variables in {file.name}: NCCL_BUFFSIZE=4194304, NCCL_DEBUG_FILE=/dev/null" in log, log
                assert "NCCL's NCCL_BUFFSIZE=" not in log and "NCCL's NCCL_IB_TIMEOUT=18" in log, log


def test_a_preset_by_name_is_what_each_host_makes_of_it():
    with Run([*LONG, "nccl.preset=ethernet"], env={"NCCL_BUFFSIZE": "2097152"}) as run:
        run.wait_for_step()
        for rank in range(2):
            log = log_of(run, rank)
            assert 'nccl.preset = "ethernet": nccl.buffer_bytes stays: it is set already' in log, log
            assert "NCCL's NCCL_BUFFSIZE=" not in log, "explicit ones win"
            here = 'NCCL_SOCKET_IFNAME==' in log and '(nccl.socket_interface, nccl.preset = "ethernet")' in log
            assert here or "no interface leads to other hosts" in log, log
    with Run([*LONG, "nccl.preset=ethernet"]) as run:
        run.wait_for_step()
        assert 'NCCL\'s NCCL_BUFFSIZE=8388608 (nccl.buffer_bytes, nccl.preset = "ethernet")' in log_of(run, 1), log_of(run, 1)
        assert '8388608' in run.exec("nccl.show()").stdout


def test_nothing_is_confirmed_that_changes_nothing():
    with Run(LONG) as run:
        run.wait_for_step()
        for code, said in (("nccl.algo = 'ring'", "nccl.algo would change nothing: this run trains on the processors"),
                           ("nccl.preset('ethernet')", "would change nothing"),
                           ("nccl.ib_timeout = 23", "allowed: 0 to 22"),
                           ("NCCL_BUFFSIZE = 4096", "it is called nccl.buffer_bytes"),
                           ("NCCL_TIMEOUT = 1800", "comm.timeout_s"),
                           ("nccl.tuner_plugin = 'x.so'", "a console can't")):
            answer = run.exec(code)
            assert answer.returncode in (3, 5) and said in answer.stderr, (code, answer)
        shown = run.exec("nccl.show()")
        assert "nccl.buffer_bytes" in shown.stdout and "NCCL_BUFFSIZE" in shown.stdout, shown
        assert "applied at step" in run.exec("log.every = 7").stderr
        client = run.wait_for_step()
        assert "nccl.buffer_bytes = 0 bytes" in client.ask("help", name="NCCL_BUFFSIZE")["text"]


if __name__ == "__main__":
    main([test_every_rank_sets_what_the_settings_say, test_nccls_own_file_stays_with_nccl,
          test_a_preset_by_name_is_what_each_host_makes_of_it, test_nothing_is_confirmed_that_changes_nothing])
