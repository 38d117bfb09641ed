"""Verify and slice in constant memory: a trace of 300 MB that never exists as a whole."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.corpus.cut import Wanted, cut
from replay_parity.corpus.examine import examine

ROWS = 4_800
BYTES = 300_000_000
# One line as text, as objects, and what Python needs besides; nothing that grows with the rows.
BOUND = 8_000_000


def lines() -> Iterator[bytes]:
    """Rows of 62 KB: long prompts, as a trace of 10 GB has them; every one is made when it is asked for."""
    hash_ids = ",".join(str(9_000_000 + number) for number in range(7_900))
    for number in range(ROWS):
        yield (
            f'{{"timestamp":{number},"input_length":4000000,"output_length":1,"hash_ids":[{hash_ids},{number}]}}\n'
        ).encode()


@pytest.mark.timeout(300)
def test_the_memory_of_verify_and_slice_does_not_grow_with_the_trace(tmp_path: Path) -> None:
    whole, part, size = hashlib.sha256(), hashlib.sha256(), 0
    for number, line in enumerate(lines()):
        whole.update(line)
        size += len(line)
        if 100 <= number < 4_700:
            part.update(line)
    assert size > BYTES
    corpus = Corpus.model_validate(
        {
            "schema_version": 1,
            "name": "large",
            "title": "A large trace",
            "format": "mooncake",
            "block_size": 512,
            "source": {
                "kind": "upstream",
                "repository": "https://github.com/some/traces",
                "commit": "1" * 40,
                "path": "large.jsonl",
                "licence": "Apache-2.0",
                "full_rows": ROWS,
                "full_sha256": whole.hexdigest(),
            },
            "slice": {"start": 100, "rows": 4_600, "sha256": part.hexdigest()},
        }
    )
    output = tmp_path / "slice.jsonl"
    tracemalloc.start()
    try:
        found = examine(corpus, lines, where="made")
        _, verifying = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        made = cut(lines, Wanted(100, 200, "mooncake", 512), output=output, where="made")
        _, cutting = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.error is None
    assert found.facts is not None
    assert found.facts.requests == 4_600
    assert (made.scan.rows, made.scan.sha256) == (ROWS, whole.hexdigest())
    assert output.read_bytes().count(b"\n") == 200
    assert max(verifying, cutting) < BOUND
