"""This Linux without what macOS has not."""

import sys

sys.path.append(__file__.rpartition("/tests/")[0])

import socket

from tests.systems.lacks import take_away

take_away(
    "darwin",
    {
        "os": [
            *("memfd_create", "MFD_*", "pidfd_open", "P_PIDFD", "PIDFD_*", "pipe2", "posix_fallocate", "posix_fadvise"),
            *("O_TMPFILE", "O_DIRECT", "O_PATH", "sched_*", "waitid", "eventfd*", "EFD_*", "splice", "copy_file_range"),
        ],
        "signal": ["pidfd_send_signal", "sigtimedwait", "sigwaitinfo", "SIGRT*", "SIGPWR", "SIGSTKFLT", "SIGPOLL"],
        "fcntl": [
            "F_OFD_*",
            "F_ADD_SEALS",
            "F_GET_SEALS",
            "F_SEAL_*",
            "F_SETSIG",
            "F_GETSIG",
            "F_NOTIFY",
            "F_SETPIPE_SZ",
        ],
        "select": ["epoll", "EPOLL*"],
        "mmap": ["MAP_POPULATE", "MAP_DENYWRITE", "MAP_EXECUTABLE"],
        "socket": ["SOCK_CLOEXEC", "SOCK_NONBLOCK"],
    },
    modules=("spwd", "ossaudiodev"),
    symbols=("prctl", "fallocate", "mallopt", "malloc_trim"),
)

_socketpair = socket.socketpair


def socketpair(family=None, type=socket.SOCK_STREAM, proto=0):
    if type == socket.SOCK_SEQPACKET:
        raise OSError(43, "Protocol not supported")
    return _socketpair(family, type, proto)


socket.socketpair = socketpair
