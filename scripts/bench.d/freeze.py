"""Stops single threads of other processes, and lets them go on: the switch of `scripts/bench idle`.

A thread is stopped with ptrace while its process runs on. It is only ever stopped inside a waiting system call, so that
it holds no lock that training could want.
"""

import ctypes
import os
import pathlib
import time

SEIZE, INTERRUPT, CONTINUE, DETACH = 0x4206, 0x4207, 7, 17
WAIT_ALL = 0x40000000  # __WALL: threads too
# x86_64: poll, nanosleep, futex, clock_nanosleep, epoll_wait, ppoll, epoll_pwait, restart_syscall, recvmsg
WAITING_CALLS = {7, 35, 202, 230, 232, 271, 281, 219, 47}

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def threads_named(pid, name):
    """Thread ids of the process whose name (pthread_setname_np) this is."""
    return [int(task.name) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            if (task / "comm").read_text().strip() == name]


class Thread:
    """One thread of another process. All calls on the thread that made it."""

    def __init__(self, tid):
        self.tid = tid
        self.stopped = False
        self.call(SEIZE)

    def call(self, request):
        if libc.ptrace(request, self.tid, None, None) != 0:
            error = ctypes.get_errno()
            raise OSError(error, f"ptrace of thread {self.tid}: {os.strerror(error)}; it must be allowed on this machine")

    def stop(self):
        for _ in range(1000):
            self.call(INTERRUPT)
            os.waitpid(self.tid, WAIT_ALL)
            self.stopped = True
            word = pathlib.Path(f"/proc/{self.tid}/syscall").read_text().split()[0]
            if word.isdigit() and int(word) in WAITING_CALLS:
                return
            self.resume()
            time.sleep(0.001)
        raise RuntimeError(f"thread {self.tid} was never found waiting")

    def resume(self):
        if self.stopped:
            self.call(CONTINUE)
            self.stopped = False

    def release(self):
        if not self.stopped:
            self.call(INTERRUPT)
            os.waitpid(self.tid, WAIT_ALL)
        self.call(DETACH)
