"""Lines of a trace file, one at a time, and what a line must look like before it is read as JSON.

Decided once, for every trace (the checksum is always over the bytes as they are; nothing is ever repaired):

- carriage return: refused. Line ends were converted, mostly by git or an editor, so the bytes are another trace.
- blank line: refused. The engine passes over it, so rows would be counted in two ways.
- byte order mark at the start: refused. The engine cannot read it.
- NUL byte: refused. It is a hole of a broken copy, or UTF-16.
- bytes that are not UTF-8: refused. JSON is UTF-8, and the engine reads nothing else.
- compressed file (gzip, zstd, zip, xz): refused with its name. It is never unpacked: the checksum is of the trace.
- line of more than 16 MiB: refused before it is held in memory.
- no newline at the end: accepted when the checksum was taken so, since the engine reads it; the last line is a row.
- last line cut off: refused as no JSON object, with its line number.

All but the length are asked of the slice only: what the checksum of the full trace covers but no replay reads is not
looked into.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from replay_parity.errors import CorpusError

LINE_CAP = 16 << 20
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip", b"\xfd7zXZ": "xz", b"BZh": "bzip2"}


def trace_lines(file: BinaryIO, *, where: str) -> Iterator[bytes]:
    """Lines with their newlines, in constant memory; CorpusError at a line above the cap or when reading fails."""
    number = 0
    while True:
        number += 1
        try:
            line = file.readline(LINE_CAP + 1)
        except OSError as error:
            raise CorpusError(f"cannot be read further at line {number}: {error.strerror}", where=where) from error
        if not line:
            return
        if len(line) > LINE_CAP:
            raise CorpusError(f"line {number} is longer than {LINE_CAP:,} bytes; this is no trace", where=where)
        yield line


def form_problem(line: bytes, *, first: bool) -> str | None:
    """What is wrong with the form of a line, completing "line 7 ...", or None; `first` is the first line of a file."""
    problem = _wrong_beginning(line) if first else None
    if problem is not None:
        return problem
    if b"\0" in line:
        return "holds a NUL byte: the file is damaged, or it is not UTF-8"
    if b"\r" in line:
        return "holds a carriage return: line ends were converted, get the file again without conversion"
    if not line.strip():
        return "is blank"
    return _not_utf8(line)


def _wrong_beginning(line: bytes) -> str | None:
    for mark, name in _PACKED.items():
        if line.startswith(mark):
            return f"is the beginning of a {name} file: unpack it first"
    if line.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return "starts with a byte order mark: save the file as UTF-8 without one"
    return None


def _not_utf8(line: bytes) -> str | None:
    if line.isascii():
        return None
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"is not UTF-8 (byte {error.start + 1})"
    return None
