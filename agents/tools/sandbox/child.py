"""Confines the process that it is started in, then runs a worker or becomes another program.

It is started by path and isolated, with a policy as JSON and a command. If the policy can't be
applied it exits, so that nothing runs with more than it allows. What the kernel doesn't have is
left out of the policy by `command`.
"""

import ctypes
import errno
import json
import os
import platform
import resource
import runpy
import signal
import stat
import struct
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

EXIT_NOT_CONFINED = 126
# The same numbers on all Linux architectures since 5.13.
CREATE_RULESET = 444
ADD_RULE = 445
RESTRICT_SELF = 446
VERSION_FLAG = 1
PATH_BENEATH = 1
SET_PARENT_DEATH_SIGNAL = 1
SET_SECCOMP = 22
SET_NO_NEW_PRIVS = 38
DROP_BOUNDING = 24
AMBIENT = 47
CLEAR_AMBIENT = 4
LAST_CAPABILITY = 63
CAPABILITY_VERSION = 0x20080522
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
SECCOMP_FILTER = 2
# The kernel's name of the architecture, and its number for socket(2). io_uring, which opens
# sockets as well, has the same number everywhere.
SOCKET_CALLS = {
    "x86_64": (0xC000003E, 41),
    "aarch64": (0xC00000B7, 198),
    "riscv64": (0xC00000F3, 198),
}
IO_URING_SETUP = 425
X32_CALLS = 0x40000000
LOAD_WORD = 0x20
JUMP_EQUAL = 0x15
JUMP_AT_LEAST = 0x35
RETURN = 0x06
ALLOW = 0x7FFF0000
REFUSE_WITH = 0x00050000
REFUSE = REFUSE_WITH | 13  # EACCES
ARGUMENTS_OFFSET = 16  # in struct seccomp_data; of each, the lower half
ARGUMENT_BYTES = 8

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
MAKE_CHAR = 1 << 6
MAKE_BLOCK = 1 << 11
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15
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
    policy = json.loads(sys.argv[1])
    command = sys.argv[2:]
    for name, path in policy.get("modules", {}).items():
        load_module(name, path)
    try:
        confine(policy)
    except OSError as error:
        _exit(f"The sandbox couldn't be applied: {error.strerror or error}.")
    if policy.get("is_worker"):
        # In this interpreter: starting another one takes as long again.
        sys.argv = command
        runpy.run_path(command[0], run_name="__main__")
        return
    # Python ignores these, and a program inherits that; too large an output must end it.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(command[0], command, os.environ)
    except OSError as error:
        _exit(f"{command[0]}: {error.strerror}")


def load_module(name: str, path: str) -> None:
    """Import a module of the product alone, with empty packages around it."""
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    while "." in name:
        name, _dot, own_name = name.rpartition(".")
        package = sys.modules.setdefault(name, ModuleType(name))
        setattr(package, own_name, module)
        module = package


def confine(policy: dict[str, Any]) -> None:
    """Give up everything that the policy doesn't grant."""
    if uid := policy.get("uid"):
        switch_user(uid)
    if "limits" in policy:
        set_limits(policy["limits"], policy["nice"])
        end_with_parent()
    has_network = policy.get("has_network", True)
    if not has_network and not has_seccomp():
        leave_network()
    drop_privileges()
    if "read" in policy:
        restrict(policy["read"], policy["write"])
    if not has_network and has_seccomp():
        forbid_sockets()
    if "refused_calls" in policy:
        forbid_calls(policy["refused_calls"])


def set_limits(limits: dict[str, list[int]], nice: int) -> None:
    """Set resource limits, soft and hard, and close what was inherited by accident."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.nice(nice)
    for name, (soft, hard) in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        if kind == resource.RLIMIT_AS and sys.platform != "linux":
            continue
        _, hard_limit = resource.getrlimit(kind)
        if hard_limit != resource.RLIM_INFINITY:
            soft = min(soft, hard_limit)
            hard = min(hard, hard_limit)
        resource.setrlimit(kind, (soft, hard))


def end_with_parent() -> None:
    """Have this process killed when the thread that started it has ended."""
    if sys.platform == "linux":
        _prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


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
        # The bounding set only counts when another program is started.
        header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
        no_capabilities = bytes(24)
        if ctypes.CDLL(None, use_errno=True).capset(header, no_capabilities) != 0:
            raise OSError(ctypes.get_errno(), "capset")


def has_seccomp() -> bool:
    """Whether the kernel can refuse single system calls, and we know their numbers here."""
    if not sys.platform.startswith("linux") or platform.machine() not in SOCKET_CALLS:
        return False
    try:
        _prctl(SET_SECCOMP, SECCOMP_FILTER)  # without a filter: it only looks at the mode
    except OSError as error:
        return error.errno == errno.EFAULT
    return False


def forbid_sockets() -> None:
    """Refuse new sockets of any kind, for this process and what it starts."""
    architecture, socket_call = SOCKET_CALLS[platform.machine()]
    filters = [
        (LOAD_WORD, 0, 0, 4),  # the architecture
        (JUMP_EQUAL, 0, 5, architecture),
        (LOAD_WORD, 0, 0, 0),  # the number of the call
        (JUMP_EQUAL, 3, 0, socket_call),
        (JUMP_EQUAL, 2, 0, IO_URING_SETUP),
        (JUMP_AT_LEAST, 1, 0, X32_CALLS),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE),
    ]
    _add_filter(filters)


def forbid_calls(rules: list[dict[str, Any]]) -> None:
    """Refuse these system calls, each always or for some values of an argument."""
    architecture, _ = SOCKET_CALLS[platform.machine()]
    filters = [
        (LOAD_WORD, 0, 0, 4),  # the architecture
        (JUMP_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, REFUSE),
        (LOAD_WORD, 0, 0, 0),  # the number of the call
        (JUMP_AT_LEAST, 0, 1, X32_CALLS),
        (RETURN, 0, 0, REFUSE),
    ]
    for rule in rules:
        refusal = REFUSE_WITH | rule["error"]
        decision = [(RETURN, 0, 0, refusal)]
        if rule["argument"] is not None:
            value_result = ALLOW if rule["is_allowed"] else refusal
            decision = [(LOAD_WORD, 0, 0, ARGUMENTS_OFFSET + ARGUMENT_BYTES * rule["argument"])]
            for value in rule["values"]:
                decision += [(JUMP_EQUAL, 0, 1, value), (RETURN, 0, 0, value_result)]
            decision.append((RETURN, 0, 0, refusal if rule["is_allowed"] else ALLOW))
        filters += [(JUMP_EQUAL, 0, len(decision), rule["call"]), *decision]
    _add_filter([*filters, (RETURN, 0, 0, ALLOW)])


def _add_filter(filters: list[tuple[int, int, int, int]]) -> None:
    packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in filters)
    code = ctypes.create_string_buffer(packed)
    program = struct.pack("@HP", len(filters), ctypes.addressof(code))
    _prctl(SET_SECCOMP, SECCOMP_FILTER, ctypes.create_string_buffer(program))


def leave_network() -> None:
    """Move to a network without connections, where the system allows that."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNET) != 0:
            libc.unshare(CLONE_NEWUSER | CLONE_NEWNET)


def restrict(readable: list[str], writable: list[str]) -> None:
    """Restrict the file system to these paths."""
    version = landlock_abi()
    handled = FIRST_RIGHTS
    for since, right in LATER_RIGHTS.items():
        handled |= right if version >= since else 0
    scoped = SCOPES[6] if version >= 6 else 0
    ruleset = Ruleset(handled_access_fs=handled, scoped=scoped)
    size = ctypes.c_size_t(ctypes.sizeof(ruleset))
    ruleset_fd = _syscall(CREATE_RULESET, ctypes.byref(ruleset), size, 0)
    for path in readable:
        _allow_path(ruleset_fd, path, READ_RIGHTS & handled)
    for path in writable:
        _allow_path(ruleset_fd, path, handled & ~(MAKE_CHAR | MAKE_BLOCK))
    _syscall(RESTRICT_SELF, ruleset_fd, 0)
    os.close(ruleset_fd)


def _allow_path(ruleset_fd: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # doesn't exist, so there is nothing to allow
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= FILE_RIGHTS
        rule = PathBeneath(allowed_access=rights, parent_fd=descriptor)
        _syscall(ADD_RULE, ruleset_fd, PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(descriptor)


def _syscall(number: int, *arguments: object) -> int:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    result: int = call(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _prctl(option: int, argument: int, pointer: Any = None) -> None:
    call = ctypes.CDLL(None, use_errno=True).prctl
    unused = ctypes.c_ulong(0)
    if call(option, ctypes.c_ulong(argument), pointer, unused, unused) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _exit(sentence: str) -> None:
    os.write(2, f"{sentence}\n".encode())
    os._exit(EXIT_NOT_CONFINED)


if __name__ == "__main__":
    main()
