"""Gives up everything a sandboxed program does not need, then becomes that program.

Runs alone, under `python -I`, and so imports nothing of this package. Arguments: the program, its
working folder, a file in which to say what is in force, and the limits as name=value.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_NETWORK = 0x00020000, 0x08000000, 0x10000000, 0x40000000
MS_BIND, MS_RECURSIVE, MS_PRIVATE = 4096, 16384, 1 << 18
MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, READ_ONLY = 442, -100, 0x8000, 1
NO_NEW_PRIVILEGES = 38
NOBODY = 65534


class MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("namespace", ctypes.c_uint64),
    )


def main(report: int, program: str, work: str, *limits: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    root = os.geteuid() == 0
    as_nobody = root and nobody_can_run()
    in_force = isolated(libc, work, keep_user=as_nobody)
    if as_nobody:
        become_nobody()
    # In a user namespace without a mapping root is nobody, too: no privilege survives the exec.
    if os.geteuid() != 0:
        in_force.append("user")
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    limited(dict(item.split("=") for item in limits))
    in_force.append("limits")
    os.write(report, " ".join(in_force).encode())
    os.close(report)
    os.execv(sys.executable, [sys.executable, "-I", "-B", program])


def nobody_can_run() -> bool:
    """Whether this interpreter may be started by nobody (not from a home folder of root's)."""
    child = os.fork()
    if child == 0:
        become_nobody()
        fit = os.access(sys.executable, os.X_OK) and os.access(os.__file__, os.R_OK)
        os._exit(0 if fit else 1)
    return os.waitpid(child, 0)[1] == 0


def become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def isolated(libc: ctypes.CDLL, work: str, *, keep_user: bool) -> list[str]:
    """Leaves the network and the writable file systems behind, as far as the kernel agrees."""
    user = 0 if keep_user else NEW_USER
    if libc.unshare(user | NEW_NETWORK | NEW_IPC | NEW_MOUNTS) == 0:
        return ["network", *read_only(libc, work)]
    return ["network"] if libc.unshare(user | NEW_NETWORK) == 0 else []


def read_only(libc: ctypes.CDLL, work: str) -> list[str]:
    """Makes all mounts read-only, but the working folder."""
    folder, root = work.encode(), b"/"
    locked, opened = MountAttributes(set=READ_ONLY), MountAttributes(clear=READ_ONLY)
    size = ctypes.sizeof(MountAttributes)

    def set_attributes(path: bytes, flags: int, attributes: MountAttributes) -> bool:
        done: int = libc.syscall(
            MOUNT_SETATTR, AT_FDCWD, path, flags, ctypes.byref(attributes), size
        )
        return done == 0

    done = (
        libc.mount(b"none", root, None, MS_RECURSIVE | MS_PRIVATE, None) == 0
        and libc.mount(folder, folder, None, MS_BIND, None) == 0
        and set_attributes(root, AT_RECURSIVE, locked)
        and set_attributes(folder, 0, opened)
    )
    # The working folder was entered before it became a mount of its own.
    os.chdir(work)
    return ["filesystem"] if done else []


def limited(limits: dict[str, str]) -> None:
    def limit(which: int, soft: int, hard: int | None = None) -> None:
        resource.setrlimit(which, (soft, soft if hard is None else hard))

    cpu_s = int(limits["cpu_s"])
    # One second more to the hard limit: the soft one ends it with a signal of its own.
    limit(resource.RLIMIT_CPU, cpu_s, cpu_s + 1)
    limit(resource.RLIMIT_AS, int(limits["memory_bytes"]))
    limit(resource.RLIMIT_FSIZE, int(limits["file_bytes"]))
    limit(resource.RLIMIT_NOFILE, int(limits["open_files"]))
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_NPROC, 0)


if __name__ == "__main__":
    # Opened first: afterwards it could not be.
    told = os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    main(told, sys.argv[1], sys.argv[2], *sys.argv[4:])
