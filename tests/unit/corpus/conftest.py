"""Corpus files made of bytes, with right checksums unless a test says otherwise."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replay_parity.campaign.corpus_file import Corpus

MakeCorpus = Callable[..., Corpus]
MakeTrace = Callable[..., bytes]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "traces"
    path.mkdir()
    return path


@pytest.fixture
def make_trace() -> MakeTrace:
    def make(rows: int = 6, **changes: Any) -> bytes:
        lines = [
            {"timestamp": number, "input_length": 600, "output_length": number, "hash_ids": [0, number + 1]} | changes
            for number in range(rows)
        ]
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    return make


@pytest.fixture
def make_corpus() -> MakeCorpus:
    """An upstream corpus for the given full trace; `start` and `rows` are those of the slice, in lines of the trace."""

    def make(
        full: bytes, *, start: int = 0, rows: int | None = None, header: int = 0, name: str = "small", **changes: Any
    ) -> Corpus:
        lines = list(io.BytesIO(full))
        count = len(lines) - header - start if rows is None else rows
        part = b"".join(lines[start : start + header + count])
        source = {
            "kind": "upstream",
            "repository": "https://example.org/traces",
            "commit": "1" * 40,
            "path": "folder/upstream.jsonl",
            "licence": "Apache-2.0",
            "full_rows": len(lines) - header,
            "full_sha256": hashlib.sha256(full).hexdigest(),
        } | changes.pop("source", {})
        part_of = {"start": start, "rows": count, "sha256": hashlib.sha256(part).hexdigest()} | changes.pop("slice", {})
        fields = {"schema_version": 1, "name": name, "title": "A small trace", "format": "mooncake", "block_size": 512}
        return Corpus.model_validate(fields | changes | {"source": source, "slice": part_of})

    return make
