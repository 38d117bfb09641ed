"""The real Mooncake traces, when they are beside the repository (or where REPLAY_PARITY_SHARED says)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.corpus.provide import provide
from replay_parity.corpus.totals import totals
from replay_parity.errors import CorpusError

ROOT = Path(__file__).parents[3]
TRACES = Path(os.environ.get("REPLAY_PARITY_SHARED") or ROOT.parent / "shared") / "data" / "mooncake"

pytestmark = pytest.mark.skipif(
    not (TRACES / "conversation_trace.jsonl").is_file(), reason=f"the Mooncake traces are not in {TRACES}"
)


def corpus(name: str) -> Corpus:
    return Corpus.model_validate(yaml.safe_load((ROOT / "configs" / "corpora" / f"{name}.yaml").read_text()))


@pytest.mark.parametrize(
    ("name", "rows", "input_tokens", "output_tokens"),
    [
        ("mooncake-conversation-5000", 5_000, 65_330_959, 1_730_337),
        ("mooncake-conversation-full", 12_031, 144_793_823, 4_122_048),
    ],
)
def test_the_conversation_trace(name: str, rows: int, input_tokens: int, output_tokens: int, tmp_path: Path) -> None:
    found = provide(corpus(name), folders=[TRACES], cache=tmp_path)
    sums = totals(found)
    assert (sums.requests, sums.input_tokens, sums.requested_output_tokens) == (rows, input_tokens, output_tokens)
    assert sums.sessions == rows


def test_one_edited_byte(tmp_path: Path) -> None:
    data = (TRACES / "conversation_trace.jsonl").read_bytes()
    (tmp_path / "conversation_trace.jsonl").write_bytes(
        data.replace(b'"output_length": 500', b'"output_length": 501', 1)
    )
    with pytest.raises(CorpusError, match=r"conversation_trace\.jsonl: SHA-256 is"):
        provide(corpus("mooncake-conversation-5000"), folders=[tmp_path], cache=tmp_path / "cache")
