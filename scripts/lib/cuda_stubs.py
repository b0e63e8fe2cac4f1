#!/usr/bin/env python3
"""Makes `import torch` work where the CUDA libraries aren't: libtorch_python.so is linked with libtorch_cuda.so, and that one
with cuBLAS, cuDNN, NCCL and others, 3.4 GB that nothing calls without a device.

    cuda_stubs.py ENVIRONMENT

For each library that LibTorch names and the environment lacks, a library of that name whose functions end the process. They
lie in ENVIRONMENT/lib/cuda-stubs; a .pth file loads them before anything else, so that the loader finds them by their names.
An environment with all libraries gets none.
"""

import pathlib
import re
import subprocess
import sys

LOADED_BY = ("torch_python", "torch_cuda", "torch_nvshmem", "c10_cuda", "torch_cpu", "shm")
NVIDIA = ("libcu", "libnccl", "libnv")
PTH = "import ctypes, glob, sys; list(map(ctypes.CDLL, sorted(glob.glob(sys.prefix + '/lib/cuda-stubs/*.so.*'))))\n"


def read(*arguments):
    return subprocess.run(["readelf", "-W", *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", read("-d", library))


def symbols(library):
    """(undefined, defined): names with their versions, "cublasCreate_v2@libcublas.so.13"; weak ones may stay undefined."""
    undefined, defined = set(), set()
    for line in read("--dyn-syms", library).splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].endswith(":"):
            continue
        if fields[6] != "UND":
            defined.add(fields[7].split("@")[0])
        elif fields[4] == "GLOBAL":
            undefined.add(fields[7])
    return undefined, defined


def versions(library):
    """Which library defines which version of symbols: {"NVSHMEM": "libnvshmem_host.so.3"}."""
    owner, owners = None, {}
    for file, version in re.findall(r"File: (\S+)|Name: (\S+)  Flags", read("--version-info", library)):
        owner = file or owner
        if version:
            owners[version] = owner
    return owners


def missing_libraries(site, libraries):
    """NVIDIA's libraries that LibTorch is linked with and no wheel has. What the system has may be of another version."""
    there = {path.name for path in (site / "nvidia").rglob("*.so*")}
    names = {name for library in libraries for name in needed(library)}
    return sorted(name for name in names - there if name.startswith(NVIDIA))


def write_stub(folder, name, functions):
    """`functions`: {version: names}; without a version: ""."""
    every = sorted({function for names in functions.values() for function in names})
    body = "".join(f"void {function}(void) {{ __builtin_trap(); }}\n" for function in every) or "\n"
    script = folder / "versions"
    script.write_text("".join(f"{version} {{ global: {'; '.join(sorted(names))}; }};\n" for version, names in functions.items() if version),
                      encoding="ascii")
    options = [f"-Wl,--version-script={script}"] if script.stat().st_size else []
    subprocess.run(["cc", "-shared", "-nostdlib", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{name}", *options, "-x", "c", "-",
                    "-o", str(folder / name)], input=body, text=True, check=True)
    script.unlink()


def main():
    environment = pathlib.Path(sys.argv[1]).absolute()
    site = next((environment / "lib").glob("python3*/site-packages"))
    libraries = [site / "torch" / "lib" / f"lib{name}.so" for name in LOADED_BY]
    missing = missing_libraries(site, libraries)
    if not missing:
        return
    undefined, defined, owners = set(), set(), {}
    for library in [*libraries, *(site / "nvidia").rglob("*.so*")]:
        wants, has = symbols(library)
        defined |= has
        if library in libraries:
            undefined |= wants
            owners.update(versions(library))
    folder = environment / "lib" / "cuda-stubs"
    folder.mkdir(parents=True, exist_ok=True)
    stubs = {name: {} for name in missing}
    for symbol in undefined:
        name, _, version = symbol.partition("@")
        if version and owners.get(version) in stubs:
            stubs[owners[version]].setdefault(version, set()).add(name)
        elif not version and name not in defined and not name.startswith(("_Z", "Py", "_Py")):
            # Whose it is can't be told, and doesn't matter: the loader looks for it in all libraries.
            stubs[missing[0]].setdefault("", set()).add(name)
    for name, functions in stubs.items():
        write_stub(folder, name, functions)
    (site / "cuda-stubs.pth").write_text(PTH, encoding="ascii")


if __name__ == "__main__":
    main()
