"""This Linux without what Windows has not. What is imported here has made up its mind that it is on Linux."""

# ruff: noqa: F401

import sys

sys.path.append(__file__.rpartition("/tests/")[0])

import multiprocessing.context
import os
import random
import shutil
import socket
import subprocess
import tempfile

import numpy.random
from tests.systems.lacks import is_for_stoker, take_away

take_away(
    "win32",
    {
        "os": [
            *("memfd_create", "MFD_*", "pidfd_open", "P_PIDFD", "PIDFD_*", "pipe2", "posix_*", "sched_*", "eventfd*"),
            *("EFD_*", "splice", "copy_file_range", "waitid", "wait", "wait3", "wait4", "WNOHANG", "WEXITED", "fork"),
            *("forkpty", "register_at_fork", "geteuid", "getegid", "getuid", "getgid", "getgroups", "getresuid"),
            *("uname", "sysconf*", "statvfs", "fstatvfs", "pread*", "pwrite*", "mkfifo", "killpg", "getpgid", "setsid"),
            *("setpgid", "nice", "getloadavg", "fchmod", "fchown", "chown", "lockf", "set_blocking", "get_blocking"),
            *("O_TMPFILE", "O_DIRECT", "O_PATH", "O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW", "O_DIRECTORY", "O_ASYNC"),
            *("O_ACCMODE", "O_SYNC", "O_NOCTTY"),
        ],
        "signal": [
            *(
                "pidfd_send_signal",
                "sigtimedwait",
                "sigwait*",
                "sigpending",
                "SIGRT*",
                "SIGPWR",
                "SIGSTKFLT",
                "SIGPOLL",
            ),
            *("SIGALRM", "SIGVTALRM", "SIGPROF", "SIGKILL", "SIGSTOP", "SIGCONT", "SIGCHLD", "SIGPIPE", "SIGBUS"),
            *("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGSYS"),
            *("SIGTRAP", "setitimer", "getitimer", "ITIMER_*", "pthread_*", "SIG_BLOCK", "SIG_UNBLOCK", "SIG_SETMASK"),
            *("alarm", "pause", "siginterrupt"),
        ],
        "select": ["epoll", "EPOLL*", "poll", "POLL*"],
        "mmap": ["MAP_*", "PROT_*", "MADV_*"],
        "socket": ["AF_UNIX", "SOCK_CLOEXEC", "SOCK_NONBLOCK", "SOCK_SEQPACKET", "SCM_*", "send_fds", "recv_fds"],
        "faulthandler": ["register", "unregister"],
        "time": ["clock_gettime*", "CLOCK_*", "pthread_getcpuclockid"],
    },
    modules=("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "curses", "readline", "syslog"),
    symbols=("prctl", "fallocate", "mallopt", "malloc_trim", "dlopen"),
)

shutil._use_fd_functions = False  # as there
shutil._rmtree_impl = getattr(shutil, "_rmtree_unsafe", None)  # which Python 3.14 has chosen by then
_open = os.open


def open_file(path, flags, mode=0o777, *, dir_fd=None):
    if is_for_stoker(skipping=__name__):
        if dir_fd is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", path)
    return _open(path, flags, mode, dir_fd=dir_fd)


os.open = open_file
