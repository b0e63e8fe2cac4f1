#!/usr/bin/env python3
"""scripts/bundle: what it packs runs away from where it was built, with LibTorch as the only thing from outside."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import harness
from harness import ROOT, main, wait_until


def libraries(program):
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "not found" not in text, text
    return {name: path for name, path in re.findall(r"(\S+) => (.+) \(0x", text)}


@contextlib.contextmanager
def unpacked():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-bundle-"))
    try:
        archive = folder / "b.tar.gz"
        made = subprocess.run([ROOT / "scripts" / "bundle", "--device", archive], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        assert made.returncode == 0, made.stderr
        assert archive.stat().st_size < 64 << 20, made.stderr
        subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True)
        archive.unlink()
        (bundle,) = folder.iterdir()
        yield bundle
    finally:
        shutil.rmtree(folder)


def libtorch():
    return pathlib.Path(libraries(harness.BIN / "footplate-rank")["libtorch_cpu.so"]).parent


def bare(bundle):
    """Neither this account's caches nor a PATH beyond the system's."""
    return {"HOME": str(bundle.parent), "PATH": "/usr/bin:/bin", "TERM": "dumb"}


def setup(bundle, *options):
    return subprocess.run([bundle / "setup", *options], capture_output=True, text=True, env=bare(bundle), stdin=subprocess.DEVNULL, check=False)


def test_a_bundle_runs_elsewhere():
    with unpacked() as bundle:
        for options, texts in (((), ["no LibTorch here", "--libtorch DIR"]), (("--libtorch", "/usr/lib"), ["/usr/lib has no libtorch_cpu.so"]),
                               (("--torch", "x"), ["unknown option --torch", "--libtorch"])):
            refused = setup(bundle, *options)
            assert refused.returncode == 1 and all(text in refused.stderr for text in texts), refused.stderr
        other = bundle.parent / "other" / "torch" / "lib"
        other.mkdir(parents=True)
        (other / "libtorch_cpu.so").touch()
        (other.parent / "version.py").write_text("__version__ = '2.9.1+cu128'\n")
        refused = setup(bundle, "--libtorch", str(other))
        assert refused.returncode == 1 and "is LibTorch 2.9.1; these programs were built with" in refused.stderr, refused.stderr

        ready = setup(bundle, "--libtorch", str(libtorch()))
        assert ready.returncode == 0 and ready.stdout.startswith("ready: "), ready.stderr
        outside = {"libtorch_cpu.so", "libc10.so", "libgomp.so.1", "libcudart.so.13", "libcupti.so.13"}
        for program in (bundle / "bin").iterdir():
            for name, path in libraries(program).items():
                of_system = re.match(r"lib(c|m|dl|pthread|rt|util|resolv)\.so|ld-linux", name)
                assert of_system or name in outside or pathlib.Path(path).resolve().is_relative_to(bundle), (program.name, name, path)

        device = subprocess.run(["ldd", bundle / "lib" / "libfootplate_cuda.so"], capture_output=True, text=True, check=True).stdout
        for name in ("libtorch_cuda.so", "libtorch_cpu.so", "libc10_cuda.so", "libcudart.so.13"):
            assert re.search(rf"{name} => {bundle}/lib/(libtorch|cuda)/", device), (name, device)

        trains(bundle)
        measures(bundle)


def measures(bundle):
    """What is for a device, as far as it goes without one: its programs start, its paths are right."""
    results = bundle.parent / "results"
    check = subprocess.run([bundle / "check-device", "--device", "cpu", "--quick", "--results", results, "tests", "rebuild"], env=bare(bundle),
                           cwd=bundle.parent, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout
    assert re.search(r"\[  SKIPPED \] \d+ tests", (results / "tests.txt").read_text()), check.stdout
    assert "left out: processors have no NCCL" in check.stdout, check.stdout
    refused = subprocess.run([bundle / "check-device", "gtp2"], env=bare(bundle), capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "unknown argument gtp2; parts are tests, runs, gpt2" in refused.stderr, refused


def trains(bundle):
    command = [bundle / "bin" / "footplate", "run", bundle / "configs" / "kjv.lua", "--batch", "-n", "2", "--name", "b",
               "train.steps=100000", "eval.every=0", "ckpt.every=0"]
    run = subprocess.Popen(command, env=bare(bundle), cwd=bundle.parent, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        metrics = bundle.parent / "runs" / "b" / "metrics.jsonl"
        wait_until(lambda: run.poll() is not None or (metrics.exists() and "train/loss" in metrics.read_text()), 60, "a loss")
        started = {path for path in (program_of(pid) for pid in pathlib.Path("/proc").iterdir() if pid.name.isdigit()) if path}
        for name in ("mpi/bin/", "bin/footplate-rank", "bin/footplate-console"):
            assert any(path.startswith(str(bundle / name)) for path in started), (name, started)
        told = subprocess.run([bundle / "bin" / "footplate", "exec", "run.stop{ save = false } return 6 * 7"], env=bare(bundle),
                              cwd=bundle.parent, capture_output=True, text=True, check=False)
        assert "42" in told.stdout, told
        assert run.wait(60) == 0, run.stdout.read()
    finally:
        if run.poll() is None:
            run.send_signal(signal.SIGTERM)
            run.wait(60)


def program_of(process):
    try:
        return os.readlink(process / "exe")
    except OSError:
        return None


if __name__ == "__main__":
    main([test_a_bundle_runs_elsewhere])
