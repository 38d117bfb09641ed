"""A corpus by its name or its file, and all corpora of a campaign."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.campaign.document import Document, Finding, shown
from replay_parity.campaign.library import Library
from replay_parity.campaign.loading import load_campaign
from replay_parity.campaign.messages import findings
from replay_parity.campaign.problems import Problems
from replay_parity.campaign.yaml_reader import SIZE_CAP, read_yaml
from replay_parity.errors import BadInputError, ConfigurationError, ManyErrors
from replay_parity.system.files import read_capped

_SUFFIXES = frozenset({".yaml", ".yml"})


def named_corpus(name_or_file: str) -> Corpus:
    """The corpus of a file, or of a name: looked for in `corpora/` here and among the built-in ones.

    Raises ManyErrors with every problem of the file, each with its line; BadInputError when there is no such corpus.
    """
    path = Path(name_or_file)
    if path.suffix in _SUFFIXES or "/" in name_or_file:
        return _read(path)
    library = Library.of(Path.cwd() / "corpora.yaml")
    found = library.find("corpora", name_or_file)
    if not found:
        raise BadInputError(
            f"there is no corpus '{name_or_file}'",
            hint=f"{library.suggestion('corpora', name_or_file)}; a file is given with its .yaml",
        )
    return _read(found[0])


def campaign_corpora(campaign: str) -> tuple[Corpus, ...]:
    """Every corpus that a row of the campaign replays, in the order of the rows."""
    loaded = load_campaign(Path(campaign))
    names = dict.fromkeys(item.row.corpus for item in loaded.rows)
    return tuple(loaded.corpora[name].corpus for name in names)


def _read(path: Path) -> Corpus:
    try:
        document = read_yaml(read_capped(path, cap=SIZE_CAP), path=path)
    except ConfigurationError:
        raise
    except BadInputError as error:
        raise ConfigurationError(error.message, where=shown(path), hint=error.hint) from None
    return _valid(document)


def _valid(document: Document) -> Corpus:
    problems = Problems()
    try:
        corpus = Corpus.model_validate(document.data)
    except ValidationError as error:
        problems.add(document, findings(error, document, Corpus))
        raise ManyErrors(problems.errors()) from None
    if corpus.name != document.path.stem:
        message = f"must be '{document.path.stem}', as the file is called; it is {corpus.name!r}"
        raise document.error(Finding(("name",), message))
    return corpus
