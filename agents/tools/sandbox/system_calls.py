"""System calls that a child with somebody else's code is refused.

Landlock hides files from it, but leaves calls that reach other processes of the same user, that
change a file by its path (`chmod`), or that outlive the child (System V memory). A call is
refused by its number, which differs between x86-64 and the other processors.
"""

import errno
import platform
from dataclasses import dataclass

# On all processors, since Linux 5.1.
SHARED_NUMBERS = {
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_open": 434,
    "clone3": 435,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "memfd_secret": 447,
    "process_mrelease": 448,
    "fchmodat2": 452,
    "statmount": 457,
    "listmount": 458,
    "setxattrat": 463,
    "removexattrat": 466,
    "file_setattr": 469,
}
SOCKET = (41, 198)
# On x86-64, and on processors with the generic table (None: they don't have the call).
NUMBERS: dict[str, tuple[int, int | None]] = {
    # Processes and threads: one process that starts nothing needs no limit of their number.
    "clone": (56, 220),
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    # Other processes of the same user.
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # Sockets.
    "socket": SOCKET,
    "socketpair": (53, 199),
    # What Landlock doesn't restrict: rights, times and attributes of files, and news of them.
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # Its folder stays flat, so that it can be deleted however many files are in it.
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "mknod": (133, None),
    "mknodat": (259, 33),
    # It can reserve more of the disk than a file may have bytes.
    "fallocate": (285, 47),
    "sync": (162, 81),
    "syncfs": (306, 267),
    # Memory that isn't the child's own, or outlives it.
    "memfd_create": (319, 279),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # The kernel itself.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "syslog": (103, 116),
}
LOCAL_SOCKETS = 1  # AF_UNIX
# What a socket needs to wait for others, and to reach them.
WAITING_CALLS = {"bind": (49, 200), "listen": (50, 201)}
REACHING_CALLS = {
    "connect": (42, 203),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
}
PRLIMIT = (302, 261)
PRCTL = (157, 167)
SET_PARENT_DEATH_SIGNAL = 1
IOCTL = (16, 29)
# TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: what Python asks of its own files.
FILE_COMMANDS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
FCNTL = (72, 25)
# F_SETOWN, F_SETSIG, F_SETOWN_EX: the kernel then sends a signal to any process of the user.
SIGNAL_COMMANDS = (8, 10, 15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A refused call; with an argument, only some of its values are refused."""

    call: int
    error: int = errno.EACCES
    argument: int | None = None
    values: tuple[int, ...] = ()
    is_allowed: bool = False  # these values, and no others


def refused_calls(machine: str = platform.machine()) -> list[Rule]:
    """Return the rules for this kind of processor."""
    column = 0 if machine == "x86_64" else 1
    numbers = [row[column] for row in NUMBERS.values()]
    rules = [Rule(call=number) for number in numbers if number is not None]
    for name, number in SHARED_NUMBERS.items():
        # The C library then asks with `clone`.
        error = errno.ENOSYS if name == "clone3" else errno.EACCES
        rules.append(Rule(call=number, error=error))
    # Its own limits, but not those of the server.
    rules.append(Rule(call=PRLIMIT[column], argument=0, values=(0,), is_allowed=True))
    rules.append(Rule(call=FCNTL[column], argument=1, values=SIGNAL_COMMANDS))
    # It ends with the server.
    rules.append(Rule(call=PRCTL[column], argument=0, values=(SET_PARENT_DEATH_SIGNAL,)))
    # Others change attributes of a file that is only open for reading.
    rules.append(Rule(call=IOCTL[column], argument=1, values=FILE_COMMANDS, is_allowed=True))
    return rules


def silent_sockets(machine: str = platform.machine()) -> list[Rule]:
    """Return the rules for a program that requires a local socket, which can't connect.

    Binding and listening report success without doing anything.
    """
    column = 0 if machine == "x86_64" else 1
    rules = [Rule(call=SHARED_NUMBERS["io_uring_setup"])]
    rules.append(
        Rule(call=SOCKET[column], argument=0, values=(LOCAL_SOCKETS,), is_allowed=True)
    )
    rules += [Rule(call=row[column], error=0) for row in WAITING_CALLS.values()]
    rules += [Rule(call=row[column]) for row in REACHING_CALLS.values()]
    return rules
