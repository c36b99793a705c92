"""The first process of a sandbox: hides the file system behind an overlay, then runs one program and outlives nothing.

Run by `sandbox.py` as `python -I -S enclosure.py PLAN_FD REPORT_FD`. It uses system calls only, no mount(8) or unshare(1),
and the standard library only. What it mounts is seen by nobody else and is gone with its last process.
"""

from __future__ import annotations

import base64
import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from typing import Any

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NETWORK = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
SET_FLAGS, UP = 0x8914, 1
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 32, 4096, 16384, 1 << 18
DIE_WITH_PARENT, ADOPT_ORPHANS = 1, 36
SHOWN_AS_THEY_ARE = ("/proc", "/sys", "/dev")
NOT_FILES = frozenset(
    [
        "autofs",
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "fusectl",
        "hugetlbfs",
        "mqueue",
        "nsfs",
        "proc",
        "pstore",
        "rpc_pipefs",
        "securityfs",
        "sysfs",
        "tracefs",
    ]
)

libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: Any) -> None:
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, options: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    try:
        call("mount", encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    except OSError as problem:
        raise OSError(problem.errno, f"{problem.strerror}: mount {kind or 'bind'} on {target}") from None


def main() -> None:
    plan_fd, report_fd = int(sys.argv[1]), int(sys.argv[2])
    with os.fdopen(plan_fd, "rb") as pipe:
        plan = json.loads(pipe.read())
    os.set_inheritable(report_fd, False)

    def report(**what: Any) -> None:
        os.write(report_fd, json.dumps(what).encode() + b"\n")

    libc.prctl(DIE_WITH_PARENT, signal.SIGKILL)
    try:
        if plan["overlay"]:
            enter_namespaces(NEW_NETWORK if plan["own_network"] else 0)
            first = os.fork()
            if first:
                _, status = os.waitpid(first, 0)
                os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
            libc.prctl(DIE_WITH_PARENT, signal.SIGKILL)
            root = build_root(plan["base"], plan["keep"])
            os.chroot(root)
        else:
            libc.prctl(ADOPT_ORPHANS, 1)
        os.chdir(plan["cwd"])
        for path in plan["gone"]:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            elif os.path.lexists(path):
                os.unlink(path)
        for path, content in plan["files"].items():
            with open(path, "wb") as file:
                file.write(base64.b64decode(content))
    except Exception as problem:
        report(error=f"{type(problem).__name__}: {problem}")
        os._exit(1)
    run(plan, report)


def enter_namespaces(more: int = 0) -> None:
    """A mount, IPC and process namespace of our own: as root directly, otherwise inside a user namespace."""
    wanted = NEW_MOUNTS | NEW_IPC | NEW_PIDS | more
    if libc.unshare(wanted) == 0:
        return switch_loopback_on(more)
    user, group = os.geteuid(), os.getegid()
    call("unshare", wanted | NEW_USER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    switch_loopback_on(more)


def switch_loopback_on(more: int) -> None:
    """In a network namespace of our own even the loopback device is off at first."""
    if more & NEW_NETWORK:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
            fcntl.ioctl(opened, SET_FLAGS, struct.pack("16sh14x", b"lo", UP))


def build_root(base: str, keep: str) -> str:
    """A root that shows every file as it is, and keeps every change in memory; `keep` alone is the real folder."""
    mount("none", "/", None, RECURSIVE | PRIVATE)
    seen = mounts()
    mount("tmpfs", base, "tmpfs", 0, "mode=755")
    root = os.path.join(base, "root")
    os.mkdir(root)
    os.mkdir(os.path.join(base, "pieces"))
    kinds = dict(seen)
    points = {point for point in kinds if not any(point == top or point.startswith(top + "/") for top in SHOWN_AS_THEY_ARE)}
    try:
        overlay("/", root, os.path.join(base, "root-layer"))
    except OSError:  # a user namespace may not look below the mounts that it was given
        show_piece_by_piece("/", root, points, base)
    for number, point in enumerate(point for point in kinds if point in points and point != "/"):
        cover(point, kinds[point], root, os.path.join(base, f"layer-{number}"))
    for top in ("/sys", "/dev"):
        mount(top, root + top, None, BIND | RECURSIVE)
    if os.path.isdir(root + "/dev/shm"):
        mount("tmpfs", root + "/dev/shm", "tmpfs", 0, "mode=1777")
    try:
        mount("proc", root + "/proc", "proc")
    except OSError:  # a container that masks parts of /proc forbids a new one
        mount("/proc", root + "/proc", None, BIND | RECURSIVE)
    mount(keep, root + keep, None, BIND)
    return root


def show_piece_by_piece(folder: str, root: str, points: set[str], base: str) -> None:
    """A folder with mounts below it: an overlay for each sub-folder that has none, and so on downwards."""
    for entry in os.scandir(folder):
        path, target = entry.path, root + entry.path
        if entry.is_symlink():
            os.symlink(os.readlink(path), target)
        elif entry.is_dir():
            os.mkdir(target)
            if path in SHOWN_AS_THEY_ARE or path in points or path == base:
                continue
            if any(point.startswith(path + "/") for point in points):
                show_piece_by_piece(path, root, points, base)
                continue
            try:
                overlay(path, target, os.path.join(base, "pieces", str(len(os.listdir(base + "/pieces")))))
            except OSError:
                show_read_only(path, target)
        elif entry.is_file():
            with open(target, "wb"):
                pass
            show_read_only(path, target)


def show_read_only(path: str, target: str) -> None:
    try:
        mount(path, target, None, BIND)
        mount(path, target, None, BIND | REMOUNT | READ_ONLY | locked_flags(path))
    except OSError:
        libc.umount2(os.fsencode(target), 2)  # unseen is safe, writable is not


def mounts() -> list[tuple[str, str]]:
    """Each mount point with its kind of file system, parents first; of several at one point the uppermost."""
    found: dict[str, str] = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.split()
            point = fields[4]
            for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
                point = point.replace(code, character)
            found.pop(point, None)
            found[point] = fields[fields.index("-") + 1]
    return sorted(found.items(), key=lambda entry: entry[0].count("/") if entry[0] != "/" else 0)


def cover(point: str, kind: str, root: str, layer: str) -> None:
    """One more file system below the root: an overlay of its own, or read-only where that cannot be."""
    target = root + point
    if not os.path.exists(target):
        return
    if kind not in NOT_FILES and os.path.isdir(point):
        try:
            overlay(point, target, layer)
            return
        except OSError:
            pass
    show_read_only(point, target)


def locked_flags(point: str) -> int:
    """nosuid, nodev, noexec and the access time: what a mount from outside may not lose."""
    flags = os.statvfs(point).f_flag
    return flags & (2 | 4 | 8) | (flags & 1024) | (flags & 2048) | ((1 << 21) if flags & 4096 else 0)


def overlay(lower: str, target: str, layer: str) -> None:
    upper, work = os.path.join(layer, "upper"), os.path.join(layer, "work")
    os.makedirs(upper)
    os.makedirs(work)
    described = os.stat(lower)
    os.chmod(upper, described.st_mode & 0o7777)
    escaped = lower.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
    options = f"lowerdir={escaped},upperdir={upper},workdir={work}"
    for more in (",redirect_dir=on", ",userxattr", ""):
        try:
            mount("overlay", target, "overlay", 0, options + more)
            return
        except OSError as problem:
            last = problem
    raise last


def run(plan: dict[str, Any], report: Any) -> None:
    """Run the program, bury its dead, and when it has ended leave nobody behind."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        program = subprocess.Popen(plan["command"], env=plan["environment"], stdin=subprocess.DEVNULL, preexec_fn=as_started)
    except OSError as problem:
        report(error=f"{plan['command'][0]}: {problem.strerror}")
        os._exit(1)
    report(started=program.pid)
    while True:
        pid, status = os.wait()
        if pid == program.pid:
            break
    if not plan["overlay"]:
        bury_descendants()
    report(exit=os.waitstatus_to_exitcode(status))
    os._exit(0)  # as process 1 of its namespace it takes every other process with it


def as_started() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def bury_descendants() -> None:
    """Without a process namespace: orphans were handed to us, so all that is left is below us."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        children = descendants(os.getpid())
        if not children:
            return
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                return
        time.sleep(0.01)


def descendants(of: int) -> list[int]:
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] != b"Z":
                parents[int(name)] = int(fields[1])
    found = [of]
    for parent in found:
        found.extend(pid for pid, its in parents.items() if its == parent)
    return found[1:]


if __name__ == "__main__":
    main()
