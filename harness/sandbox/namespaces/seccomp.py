"""System calls that are refused to sandboxed processes: those of the kernel's keys.

Keys are in no namespace: a process has those of the session that started the harness, and what one
container adds there another would find.
"""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path

_ALL = 0xFFFFFFFF
_ADD_KEY = {
    0xC000003E: (248, 0xBFFFFFFF),  # x86-64; the mask takes away the mark of its 32-bit form
    0x40000003: (286, _ALL),  # i386
    0xC00000B7: (217, _ALL),  # AArch64
    0x40000028: (309, _ALL),  # ARM
    0xC00000F3: (217, _ALL),  # RISC-V
    0xC0000015: (269, _ALL),  # POWER
    0x80000016: (278, _ALL),  # s390x
}
"""By architecture, as <linux/audit.h> counts them: the first of three calls in a row."""

_CALLS = 3
_LOAD, _AND, _IS, _IS_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_CALL_NUMBER, _ARCHITECTURE = 0, 4
_ALLOW, _NOT_IMPLEMENTED = 0x7FFF0000, 0x00050000 | 38


@cache
def no_keys() -> bytes:
    """A filter in the kernel's own form, or nothing where the kernel has no filters."""
    if not Path("/proc/sys/kernel/seccomp").exists():
        return b""
    program = [(_LOAD, 0, 0, _ARCHITECTURE)]
    for architecture, (first, mask) in _ADD_KEY.items():
        # The two numbers between say how many steps to skip if it holds, and if not.
        program += [
            (_IS, 0, 6, architecture),
            (_LOAD, 0, 0, _CALL_NUMBER),
            (_AND, 0, 0, mask),
            (_IS_AT_LEAST, 0, 2, first),
            (_IS_AT_LEAST, 1, 0, first + _CALLS),
            (_RETURN, 0, 0, _NOT_IMPLEMENTED),
            (_RETURN, 0, 0, _ALLOW),
        ]
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in program)
