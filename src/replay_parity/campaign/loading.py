"""From a campaign file to everything that it names: all problems of all files are told in one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from replay_parity.campaign.base import Identifier, InputModel
from replay_parity.campaign.corpus_file import Corpus
from replay_parity.campaign.document import Document, Finding, Place, located, shown
from replay_parity.campaign.frozen import FrozenRow, thaw
from replay_parity.campaign.json_reader import read_json
from replay_parity.campaign.library import Library, Shelf, builtin_campaign, builtin_campaign_names
from replay_parity.campaign.loaded import LoadedCampaign, LoadedCorpus, LoadedRow, LoadedRows
from replay_parity.campaign.messages import findings
from replay_parity.campaign.models import Campaign, RowReference
from replay_parity.campaign.problems import Problems
from replay_parity.campaign.row import Row
from replay_parity.campaign.rules import check_format, check_metadata, check_spec, check_workload
from replay_parity.campaign.yaml_reader import SIZE_CAP, read_yaml
from replay_parity.errors import BadInputError, ConfigurationError, ManyErrors
from replay_parity.system.files import read_capped

_M = TypeVar("_M", bound=InputModel)
_NAME: TypeAdapter[str] = TypeAdapter(Identifier)
# A frozen row of AI Simulate is JSON.
_ROW_SUFFIXES = frozenset({".yaml", ".yml", ".json"})


def load_campaign(path: Path) -> LoadedCampaign:
    """Load a campaign file, or a built-in campaign by its bare name (no slash, no `.yaml`).

    Raises ManyErrors with every problem of every file, each a ConfigurationError whose `where` is
    `path:line /json/pointer`.
    """
    found = _campaign_path(path)
    loading = _Loading(found, Library.of(found))
    campaign = loading.campaign()
    if loading.problems or campaign is None:
        raise ManyErrors(loading.problems.errors())
    return LoadedCampaign(campaign, found, tuple(loading.rows), loading.corpora)


def load_rows(names: Sequence[str], *, folder: Path) -> LoadedRows:
    """Load rows by name (`rows/` in `folder` and beside it, then the built-in ones) or by file (with its suffix).

    Raises BadInputError for a name that there is not, ManyErrors with every problem of every file.
    """
    asked = Document(folder.absolute() / "rows", {}, {})
    loading = _Loading(asked.path, Library.of(asked.path))
    for name in dict.fromkeys(names):
        by_file = Path(name).suffix in _ROW_SUFFIXES
        path = Path(name).absolute() if by_file else _only_row(loading.library, name)
        loading.add_row(asked, (), path, by_name=not by_file)
    if loading.problems:
        raise ManyErrors(loading.problems.errors())
    return LoadedRows(tuple(loading.rows), loading.corpora)


def _only_row(library: Library, name: str) -> Path:
    found = library.find("rows", name)
    if not found:
        raise BadInputError(f"there is no row '{name}'", hint=library.suggestion("rows", name))
    if len(found) > 1:
        raise BadInputError(f"row '{name}' could be {' and '.join(shown(path) for path in found)}: keep one of them")
    return found[0]


def _campaign_path(path: Path) -> Path:
    if path.name != str(path) or path.suffix in {".yaml", ".yml"}:
        return path.absolute()
    builtin = builtin_campaign(path.name)
    if builtin is None:
        hint = f"there are {', '.join(builtin_campaign_names())}; a file is given with its .yaml"
        raise ManyErrors([ConfigurationError(f"there is no built-in campaign '{path.name}'", hint=hint)])
    return builtin


@dataclass
class _Loading:
    """One run over all files; problems are kept, and whatever can still be looked at is."""

    path: Path
    library: Library
    problems: Problems = field(default_factory=Problems)
    rows: list[LoadedRow] = field(default_factory=list)
    corpora: dict[str, LoadedCorpus] = field(default_factory=dict)
    row_files: dict[str, Path] = field(default_factory=dict)
    corpora_tried: set[str] = field(default_factory=set)

    def campaign(self) -> Campaign | None:
        """The campaign, when its own file is in order; its rows and corpora are looked at in any case."""
        document = self._read(self.path)
        if document is None:
            return None
        campaign = self._validated(Campaign, document)
        for place, item in _row_items(document):
            path = self._row_path(document, place, item)
            if path is not None:
                by_name = isinstance(item, str) or item.file is None
                runners = None if isinstance(item, str) else item.runners
                self.add_row(document, place, path, by_name=by_name, runners=runners)
        return campaign

    def add_row(
        self, document: Document, place: Place, path: Path, *, by_name: bool, runners: tuple[str, ...] | None = None
    ) -> None:
        """Load a row, its corpus too; two of one name are a problem of the document that names them."""
        row = self._row(path, by_name=by_name)
        if row is None:
            return
        if row.name in self.row_files:
            others = f"{shown(self.row_files[row.name])} and {shown(path)}"
            self._found(document, place, f"two rows are called '{row.name}': {others}")
        self.row_files[row.name] = path
        self.rows.append(LoadedRow(row, path, runners))

    def _row_path(self, document: Document, place: Place, item: str | RowReference) -> Path | None:
        if isinstance(item, str) or item.file is None:
            return self._named("rows", item if isinstance(item, str) else str(item.name), document, place)
        path = self.path.parent / item.file
        if path.suffix not in _ROW_SUFFIXES:
            self._found(document, (*place, "file"), "must end in .yaml, or in .json for a frozen row")
        elif not path.exists():
            self._found(document, (*place, "file"), f"there is no file {shown(path)}")
        else:
            return path
        return None

    def _named(self, shelf: Shelf, name: str, document: Document, place: Place) -> Path | None:
        found = self.library.find(shelf, name)
        if len(found) == 1:
            return found[0]
        word = "row" if shelf == "rows" else "corpus"
        if found:
            files = " and ".join(shown(path) for path in found)
            self._found(document, place, f"{word} '{name}' could be {files}: keep one of them")
        else:
            self._found(document, place, f"there is no {word} '{name}'", self.library.suggestion(shelf, name))
        return None

    def _row(self, path: Path, *, by_name: bool) -> Row | None:
        document = self._read(path)
        if document is None:
            return None
        if path.suffix == ".json":
            row = self._frozen(document, by_name=by_name)
        else:
            row = self._validated(Row, document)
            self._same_name(document, "name")
        self._rules(document, row)
        if path.suffix != ".json":
            self._corpus_of(document, row)
        return row

    def _frozen(self, document: Document, *, by_name: bool) -> Row | None:
        frozen = self._validated(FrozenRow, document)
        if by_name:
            self._same_name(document, "row_name")
        if frozen is None:
            return None
        thawed = thaw(frozen)
        trace = document.path.parent / thawed.trace_file
        self.corpora.setdefault(thawed.corpus.name, LoadedCorpus(thawed.corpus, document.path, trace))
        return thawed.row

    def _rules(self, document: Document, row: Row | None) -> None:
        spec, metadata = document.data.get("spec"), document.data.get("metadata")
        if isinstance(spec, dict):
            self.problems.add(document, check_spec(spec))
        if isinstance(metadata, dict):
            self.problems.add(document, check_metadata(metadata))
        if row is not None:
            self.problems.add(document, check_workload(row.spec, row.workload))

    def _corpus_of(self, row_document: Document, row: Row | None) -> None:
        """Load the corpus of a row, once for all rows; also that of a row which has other problems."""
        try:
            name = _NAME.validate_python(row_document.data.get("corpus"))
        except ValidationError:
            return
        if name not in self.corpora_tried:
            path = self._named("corpora", name, row_document, ("corpus",))
            if path is not None:
                self.corpora_tried.add(name)
                self._corpus(name, path)
        if row is not None and name in self.corpora:
            self.problems.add(row_document, check_format(self.corpora[name].corpus.format, row.workload))

    def _corpus(self, name: str, path: Path) -> None:
        document = self._read(path)
        if document is None:
            return
        corpus = self._validated(Corpus, document)
        self._same_name(document, "name")
        if corpus is not None:
            self.corpora[name] = LoadedCorpus(corpus, path)

    def _read(self, path: Path) -> Document | None:
        self.problems.reading(path)
        try:
            data = read_capped(path, cap=SIZE_CAP)
            return read_json(data, path=path) if path.suffix == ".json" else read_yaml(data, path=path)
        except ConfigurationError as error:
            self.problems.unreadable(path, error)
        except BadInputError as error:
            self.problems.unreadable(path, located(error.message, path=path))
        return None

    def _validated(self, model: type[_M], document: Document) -> _M | None:
        try:
            return model.model_validate(document.data)
        except ValidationError as error:
            self.problems.add(document, findings(error, document, model))
            return None

    def _same_name(self, document: Document, key: str) -> None:
        name, stem = document.data.get(key), document.path.stem
        if isinstance(name, str) and name != stem:
            self._found(document, (key,), f"must be '{stem}', as the file is called; it is {name!r}")

    def _found(self, document: Document, place: Place, message: str, hint: str | None = None) -> None:
        self.problems.add(document, [Finding(place, message, hint)])


def _row_items(document: Document) -> Iterator[tuple[Place, str | RowReference]]:
    """Well-formed entries of `rows`, also of a campaign that has other problems; one listed twice comes once."""
    items = document.data.get("rows")
    seen: set[str | RowReference] = set()
    for index, item in enumerate(items if isinstance(items, list) else ()):
        try:
            valid = RowReference.model_validate(item) if isinstance(item, dict) else _NAME.validate_python(item)
        except ValidationError:
            continue
        if valid not in seen:
            seen.add(valid)
            yield ("rows", index), valid
