#!/usr/bin/env python3
"""host.py NAME SHARED ROOT: the first process of a laboratory's host (lab.py), in namespaces that unshare has made.

It mounts what is the host's own and serves SHARED/agent-NAME.sock, where agent.py asks it to run a command.
"""

import ctypes
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18


def mount(source, target, kind=None, flags=0, options=None):
    def encoded(text):
        return text.encode() if text else None
    if LIBC.mount(encoded(source), encoded(target), encoded(kind), flags, encoded(options)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


def set_up(name, shared, root):
    socket.sethostname(name)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc")
    kept = [(os.open(path, os.O_PATH), path) for path in (root, shared)]
    for place in ("/tmp", "/dev/shm"):
        mount("tmpfs", place, "tmpfs", options="mode=1777")
    for descriptor, path in kept:  # what of it lay in /tmp
        if not pathlib.Path(path).exists():
            pathlib.Path(path).mkdir(parents=True)
            mount(f"/proc/self/fd/{descriptor}", path, flags=MS_BIND | MS_REC)
        os.close(descriptor)
    mount(f"{shared}/hosts", "/etc/hosts", flags=MS_BIND)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def serve(connection):
    length, = struct.unpack("!I", connection.recv(4, socket.MSG_WAITALL))
    command = connection.recv(length, socket.MSG_WAITALL).decode()
    with connection.dup() as output:
        process = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=output.fileno(), stderr=output.fileno(),
                                   cwd="/", env={"HOME": "/root", "PATH": os.defpath, "USER": "root"}, start_new_session=True)

    def hang_up():  # as sshd does to a session whose client is gone
        while connection.recv(1):
            pass
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGHUP)
    threading.Thread(target=hang_up, daemon=True).start()
    process.wait()
    connection.shutdown(socket.SHUT_RDWR)


def listen(name, shared):
    path = pathlib.Path(shared, f"agent-{name}.sock")
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)
        pathlib.Path(shared, f"ready-{name}").touch()
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()


def main():
    set_up(*sys.argv[1:])
    if os.fork() == 0:
        listen(*sys.argv[1:3])
    while True:  # the first process: what lost its parent ends here
        os.wait()


main()
