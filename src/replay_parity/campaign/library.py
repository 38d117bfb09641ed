"""Where rows and corpora are found by name: the campaign's neighbours, then what comes with the package."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from replay_parity.campaign.builtin import builtin_configs

Shelf = Literal["rows", "corpora"]

# A row may also be one of AI Simulate's frozen rows.
_SUFFIXES: dict[Shelf, tuple[str, ...]] = {"rows": (".yaml", ".json"), "corpora": (".yaml",)}


@dataclass(frozen=True)
class Library:
    """Folders that hold `rows/` and `corpora/`; the first one that has a name wins."""

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, campaign: Path) -> Library:
        """Neighbours of a campaign file: in its own folder, beside its folder (`.replay-parity/rows`), built in."""
        folder = campaign.absolute().parent
        return cls(tuple(dict.fromkeys((folder, folder.parent, builtin_configs()))))

    def find(self, shelf: Shelf, name: str) -> Sequence[Path]:
        """Files of that name in the first folder that has any; more than one is for the caller to refuse."""
        for folder in self.folders:
            found = [path for suffix in _SUFFIXES[shelf] if (path := folder / shelf / f"{name}{suffix}").exists()]
            if found:
                return found
        return ()

    def suggestion(self, shelf: Shelf, name: str) -> str:
        """The nearest name that there is, or all that are built in when there are few."""
        names = sorted({path.stem for folder in self.folders for path in _files(folder / shelf, _SUFFIXES[shelf])})
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
        if near:
            return f"did you mean '{near[0]}'?"
        return f"looked for {name}.yaml in {shelf}/ and ../{shelf}/ beside the campaign, and among the built-in ones"


def builtin_campaign(name: str) -> Path | None:
    """The built-in campaign of that name, if there is one."""
    path = builtin_configs() / "campaigns" / f"{name}.yaml"
    return path if path.is_file() else None


def builtin_campaign_names() -> list[str]:
    """Names of all built-in campaigns."""
    return sorted(path.stem for path in _files(builtin_configs() / "campaigns", (".yaml",)))


def builtin_row_names() -> list[str]:
    """Names of all built-in rows."""
    return sorted(path.stem for path in _files(builtin_configs() / "rows", _SUFFIXES["rows"]))


def _files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix in suffixes] if folder.is_dir() else []
