"""Run a command under the system call filter of a systemd unit, without systemd: `python FILE UNIT COMMAND...`.

The sets (@system-service, ...) are expanded by systemd-analyze. The filter is loaded with libseccomp, which systemd
uses too: a call that the unit does not allow gives EPERM.
"""

import ctypes
import errno
import os
import re
import subprocess
import sys
from pathlib import Path

LIBRARY = "libseccomp.so.2"
ALLOW, ERRNO = 0x7FFF0000, 0x00050000 | errno.EPERM


def members(name: str) -> set[str]:
    """The system calls of a set like @system-service, sets within it expanded."""
    if not name.startswith("@"):
        return {name}
    listed = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True)
    words = [line.strip() for line in listed.stdout.splitlines() if line.startswith("    ")]
    return {call for word in words if not word.startswith("#") for call in members(word)}


def allowed(unit: str) -> set[str]:
    """The calls that a unit's SystemCallFilter lines leave."""
    calls = members("@default")
    for line in re.findall(r"^SystemCallFilter=(.*)$", unit, re.M):
        for word in line.removeprefix("~").split():
            calls = calls - members(word) if line.startswith("~") else calls | members(word)
    return calls


def load(calls: set[str]) -> None:
    """From here on, this process and its children may make these calls only."""
    seccomp = ctypes.CDLL(LIBRARY, use_errno=True)
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(ERRNO)))
    for call in calls:
        number = seccomp.seccomp_syscall_resolve_name(call.encode())
        if number >= 0:
            assert seccomp.seccomp_rule_add_array(context, ctypes.c_uint32(ALLOW), number, 0, None) == 0, call
    if seccomp.seccomp_load(context):
        raise OSError("the filter could not be loaded")


if __name__ == "__main__":
    load(allowed(Path(sys.argv[1]).read_text()))
    os.execvp(sys.argv[2], sys.argv[2:])
