"""The proof of form: bytes are a canonical record, or the reason why not has a name (rules 13 and 14).

A record is canonical when writing it again, with sorted keys, gives the same bytes. The fast path does just that with
orjson. It is sound because a line that equals the serialisation of *any* document has all that a serialisation has:
keys sorted and unique, no white space, shortest escapes and numbers, one newline at the end. What reading loses (a
duplicate key, the digits of a wide integer, the sign of -0, a spelling) is missing when it is written again. What the
comparison cannot see is checked besides it: size before, depth after.

When the bytes differ, the slow path (`scan`) finds the first fault. The order of refusals is fixed: size, emptiness,
encoding, number of lines, then the first fault in byte order, then the record's own rules in the order of `rules`.
The slow path also accepts the other spelling of positive exponents (`numbers`), which the fast path cannot reproduce.

Reasons: too_long, empty, not_utf8, more_than_one_line, no_final_newline, not_json, whitespace, duplicate_key,
unsorted_keys, non_finite_number, number_loses_digits, number_form, lone_surrogate, escape_form, too_deep,
not_reproduced; not_an_object, root_keys, root_type, planner, schema_version, exclusions, excluded_field,
request_type, request_uuid, duplicate_uuid, request_order.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import orjson

from replay_parity.canonical.digest import SORTED_LINE, canonical_digest, results_digest
from replay_parity.canonical.model import CanonicalRecord, Digests
from replay_parity.canonical.rules import check_record, refuse
from replay_parity.canonical.scan import MAX_DEPTH, ScanRefusal, scan
from replay_parity.system.files import open_regular

# 100,000 requests make 140 to 200 MB.
MAX_BYTES = 1 << 28

_BOM = b"\xef\xbb\xbf"
_CONTAINERS = {dict, list}


def prove(data: bytes, *, where: str, max_bytes: int = MAX_BYTES) -> CanonicalRecord:
    """Read a canonical record, or raise CanonicalFormError with `reason` and a place inside `where`.

    Equal bytes have equal form: of several records, hash all and prove one of each digest. Holds the bytes, the
    document (about twice their size) and, for a moment, a second copy of the bytes.
    """
    if len(data) > max_bytes:
        refuse("too_long", f"is longer than {max_bytes:,} bytes", where)
    document = _fast_path(data)
    if document is None:
        document = _slow_path(data, where)
    record = check_record(document, where=where)
    return CanonicalRecord(record, canonical_digest(data), results_digest(record), len(data))


def prove_digest(source: bytes | Path, *, where: str, max_bytes: int = MAX_BYTES) -> Digests:
    """Prove, and keep the digests only: nothing of the document outlives the call.

    A path must be a regular file; it is read once, up to the cap. Raises as `prove` does, BadInputError for a file
    that cannot be read.
    """
    data = source if isinstance(source, bytes) else read_record(source, max_bytes=max_bytes)
    return prove(data, where=where, max_bytes=max_bytes).digests


def read_record(path: Path, *, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a record's file, at most one more than the cap, which `prove` then refuses."""
    with open_regular(path, cap=sys.maxsize) as file:
        return file.read(max_bytes + 1)


def _fast_path(data: bytes) -> object:
    """The document when `data` is its sorted serialisation; None when that cannot be said (or it is null)."""
    try:
        document = orjson.loads(data)
        if orjson.dumps(document, option=SORTED_LINE) != data:
            return None
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        return None
    return document if _depth_is_fine(document) else None


def _depth_is_fine(document: object) -> bool:
    level: list[Any] = [document] if type(document) in _CONTAINERS else []
    for _ in range(MAX_DEPTH):
        level = [
            value
            for container in level
            for value in (container.values() if type(container) is dict else container)
            if type(value) in _CONTAINERS
        ]
        if not level:
            return True
    return False


def _slow_path(data: bytes, where: str) -> object:
    """Raise the refusal that the bytes deserve; return the document when the exponent's spelling is all there is."""
    text = _one_line(data, where)
    try:
        scan(text)
    except ScanRefusal as refusal:
        offset = len(text[: refusal.index].encode())
        pointer = f" ({refusal.pointer})" if refusal.pointer else ""
        refuse(refusal.reason, refusal.message, f"{where}, byte {offset}{pointer}")
    try:
        document: object = orjson.loads(data)
        again = orjson.dumps(document, option=SORTED_LINE)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError) as error:
        _not_reproduced(where, str(error))
    if again.replace(b"e+", b"e") != data.replace(b"e+", b"e"):
        _not_reproduced(where, "other bytes came out")
    return document


def _one_line(data: bytes, where: str) -> str:
    if not data.strip(b"\n"):
        refuse("empty", "is empty", where)
    if data.startswith(_BOM):
        refuse("not_utf8", "begins with a byte order mark", f"{where}, byte 0")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        refuse("not_utf8", f"is not UTF-8: {error.reason}", f"{where}, byte {error.start}")
    newline = data.find(b"\n")
    if -1 < newline < len(data) - 1:
        refuse("more_than_one_line", "goes on behind its first newline", f"{where}, byte {newline + 1}")
    return text


def _not_reproduced(where: str, detail: str) -> NoReturn:
    # A disagreement between the scanner and orjson: whoever is right, the record is not proven.
    refuse("not_reproduced", f"could not be read and written again: {detail}", where)
