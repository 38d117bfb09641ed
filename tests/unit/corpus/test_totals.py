from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.corpus.provide import provide
from replay_parity.corpus.totals import WorkloadTotals, totals
from replay_parity.errors import CorpusError

MakeCorpus = Callable[..., Corpus]
MakeTrace = Callable[..., bytes]

EMBEDDED = Path(__file__).parents[3] / "configs" / "corpora" / "embedded-sessions-5000.yaml"


def test_sums_and_sessions(folder: Path, cache: Path, make_trace: MakeTrace, make_corpus: MakeCorpus) -> None:
    trace = make_trace(4) + make_trace(3, session_id="a") + make_trace(2, session_id="b")
    (folder / "upstream.jsonl").write_bytes(trace)
    found = provide(make_corpus(trace, start=1, rows=7), folders=[folder], cache=cache)
    sums = totals(found)
    assert sums == WorkloadTotals(
        requests=7,
        input_tokens=7 * 600,
        requested_output_tokens=1 + 2 + 3 + 0 + 1 + 2 + 0,
        sessions=3 + 2,
        # The slice is what the engine reads, so its first row is row 1.
        turns=(("request_1", 1), ("request_2", 1), ("request_3", 1), ("a", 3), ("b", 1)),
    )
    assert list(sums.authored())[2:] == [("request_3", 0), ("a", 0), ("a", 1), ("a", 2), ("b", 0)]


def test_the_embedded_corpus(cache: Path) -> None:
    corpus = Corpus.model_validate(yaml.safe_load(EMBEDDED.read_text()))
    sums = totals(provide(corpus, folders=[], cache=cache))
    assert (sums.requests, sums.sessions) == (5_000, 1_973)
    assert (sums.input_tokens, sums.requested_output_tokens) == (28_571_350, 1_192_472)
    assert sum(turns for _, turns in sums.turns) == 5_000
    assert len(list(sums.authored())) == 5_000


def test_a_slice_that_changed_since_it_was_proven(
    folder: Path, cache: Path, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    trace = make_trace(4)
    (folder / "upstream.jsonl").write_bytes(trace)
    found = provide(make_corpus(trace), folders=[folder], cache=cache)
    found.path.chmod(0o644)
    found.path.write_bytes(trace.replace(b"600", b"601"))
    with pytest.raises(CorpusError, match="SHA-256 is"):
        totals(found)
