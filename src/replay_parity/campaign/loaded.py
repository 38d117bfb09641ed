"""Campaigns, rows and corpora as they were loaded: each with the file that it was read from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.campaign.models import Campaign
from replay_parity.campaign.row import Row


@dataclass(frozen=True)
class LoadedRow:
    """A row with the file that it was read from; `runners` when the campaign names some for this row alone."""

    row: Row
    path: Path
    runners: tuple[str, ...] | None = None


@dataclass(frozen=True)
class LoadedCorpus:
    """A corpus with the file that declares it; `trace_file` is where a frozen row says that its slice lies."""

    corpus: Corpus
    path: Path
    trace_file: Path | None = None


@dataclass(frozen=True)
class LoadedRows:
    """Rows that no campaign names, in the order asked for, and their corpora by name. Paths are absolute."""

    rows: tuple[LoadedRow, ...]
    corpora: dict[str, LoadedCorpus]


@dataclass(frozen=True)
class LoadedCampaign:
    """A campaign with all its rows, in its order, and their corpora by name. Paths are absolute."""

    campaign: Campaign
    path: Path
    rows: tuple[LoadedRow, ...]
    corpora: dict[str, LoadedCorpus]
