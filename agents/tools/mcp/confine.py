"""Confines a process by Landlock, another user, or both, then becomes an MCP server.

It is started by path, without site-packages, like its supervisor. Privileges are dropped first;
if that fails it exits, so that no server runs with more than its policy allows.
"""

import ctypes
import json
import os
import stat
import sys

EXIT_NOT_CONFINED = 126
# The same numbers on all Linux architectures since 5.13.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG = 1
PATH_BENEATH = 1
SET_NO_NEW_PRIVS, DROP_BOUNDING, AMBIENT, CLEAR_AMBIENT = 38, 24, 47, 4
LAST_CAPABILITY = 63

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
FIRST_RIGHTS = (1 << 13) - 1
LATER_RIGHTS = {2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
READ_RIGHTS = EXECUTE | READ_FILE | READ_DIR
SCOPES = {6: 0b11}  # abstract sockets and signals


class Ruleset(ctypes.Structure):
    """struct landlock_ruleset_attr; older kernels accept it if unknown fields are 0."""

    _fields_ = [
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


class PathBeneath(ctypes.Structure):
    """struct landlock_path_beneath_attr."""

    _pack_ = 1
    _layout_ = "ms"  # the same with this packing; required from Python 3.14 on
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def main() -> None:
    policy, command = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        if uid := policy.get("uid"):
            switch_user(uid)
        drop_privileges()
        if "read" in policy:
            restrict(policy["read"], policy["write"])
    except OSError as error:
        _exit(f"The sandbox couldn't be applied: {error.strerror or error}.")
    try:
        os.execve(command[0], command, os.environ)
    except OSError as error:
        _exit(f"{command[0]}: {error.strerror}")


def landlock_abi() -> int:
    """Return the kernel's Landlock version; 0 if it has none or it is off."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        return max(0, _syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION_FLAG))
    except OSError:
        return 0


def switch_user(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def drop_privileges() -> None:
    """Drop all capabilities, and make sure that no child gets more."""
    _prctl(SET_NO_NEW_PRIVS, 1)
    if os.geteuid() == 0:
        _prctl(AMBIENT, CLEAR_AMBIENT)
        for capability in range(LAST_CAPABILITY + 1):
            try:
                _prctl(DROP_BOUNDING, capability)
            except OSError:
                break  # beyond the kernel's last one, or not ours to drop


def restrict(read: list[str], write: list[str]) -> None:
    """Restrict the file system to these paths."""
    version = landlock_abi()
    handled = FIRST_RIGHTS
    for since, right in LATER_RIGHTS.items():
        handled |= right if version >= since else 0
    scoped = SCOPES[6] if version >= 6 else 0
    ruleset = Ruleset(handled_access_fs=handled, scoped=scoped)
    size = ctypes.c_size_t(ctypes.sizeof(ruleset))
    descriptor = _syscall(CREATE_RULESET, ctypes.byref(ruleset), size, 0)
    for path in read:
        _allow_path(descriptor, path, READ_RIGHTS & handled)
    for path in write:
        _allow_path(descriptor, path, handled & ~(MAKE_CHAR | MAKE_BLOCK))
    _syscall(RESTRICT_SELF, descriptor, 0)
    os.close(descriptor)


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # doesn't exist, so there is nothing to allow
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= FILE_RIGHTS
        rule = PathBeneath(allowed_access=rights, parent_fd=place)
        _syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(place)


def _syscall(number: int, *arguments: object) -> int:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    result: int = call(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _prctl(option: int, argument: int) -> None:
    call = ctypes.CDLL(None, use_errno=True).prctl
    rest = (ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    if call(option, ctypes.c_ulong(argument), *rest) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _exit(sentence: str) -> None:
    os.write(2, f"{sentence}\n".encode())
    os._exit(EXIT_NOT_CONFINED)


if __name__ == "__main__":
    main()
