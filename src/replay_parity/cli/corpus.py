"""`corpus`: traces fetched, verified, shown and cut."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from replay_parity.cli.group import EXISTING_FOLDER, FILE, cli
from replay_parity.errors import EXIT_OK

if TYPE_CHECKING:
    from replay_parity.settings import Settings

_ANY_FILE = click.Path(path_type=Path)
_FOLDERS = click.option(
    "--corpus-dir", "corpus_dirs", type=EXISTING_FOLDER, multiple=True, help="Folder that holds traces."
)
_QUIET = click.option("--quiet", "-q", is_flag=True, help="No progress.")


@cli.group(short_help="Fetch, verify, show and cut traces.")
def corpus() -> None:
    """Traces: fetch them, prove them, look at them, cut a slice. NAME is a corpus that is shipped or in corpora/."""


@corpus.command(short_help="Download traces from their pinned commits.")
@click.argument("names", nargs=-1, metavar="NAME-OR-FILE...")
@click.option("--campaign", "campaigns", multiple=True, metavar="FILE", help="All corpora that its rows need.")
@click.option("--time-limit", type=click.FloatRange(min=1), metavar="SECONDS", help="For each trace; 4 hours.")
@click.option("--size-limit", type=click.IntRange(min=1), metavar="BYTES", help="For each trace; 64 GiB.")
@_QUIET
def fetch(
    names: tuple[str, ...],
    campaigns: tuple[str, ...],
    time_limit: float | None,
    size_limit: int | None,
    quiet: bool,  # noqa: FBT001
) -> None:
    """Download traces into the cache, prove their checksums and cut their slices; `run` finds them there.

    Exit code 0 when all are there, 2 when a trace is not the one that its corpus names, 3 when the network fails: what
    has come is kept, and the same command continues.
    """
    from replay_parity.publish.progress import make_progress
    from replay_parity.stages.corpus_fetch import fetch_corpora, wanted_corpora

    settings = _settings()
    wanted = wanted_corpora(names, campaigns)
    with make_progress(quiet=quiet, plain=settings.plain) as progress:
        slices = fetch_corpora(wanted, settings=settings, progress=progress, seconds=time_limit, size_bytes=size_limit)
    for found in slices:
        click.echo(f"{found.corpus.name}: OK, {found.rows:,} rows, SHA-256 {found.sha256}")


@corpus.command(short_help="Prove a trace byte for byte and line by line.")
@click.argument("name_or_file")
@click.argument("trace", type=_ANY_FILE, required=False)
@_FOLDERS
@_QUIET
def verify(name_or_file: str, trace: Path | None, corpus_dirs: tuple[Path, ...], quiet: bool) -> None:  # noqa: FBT001
    """Prove checksum, rows and format of a corpus: exit code 0, or 2 with every distinct problem and its line.

    TRACE is the file to look at, whole or as exactly the slice; without it the folders are searched, then the cache.
    """
    from replay_parity.publish.corpus import provenance_lines
    from replay_parity.publish.plain import visible
    from replay_parity.publish.progress import make_progress
    from replay_parity.stages.corpus_named import named_corpus
    from replay_parity.stages.corpus_verify import verify_corpus

    settings, found = _settings(), named_corpus(name_or_file)
    with make_progress(quiet=quiet, plain=settings.plain) as progress:
        judged = verify_corpus(found, given=trace, folders=corpus_dirs, settings=settings, progress=progress)
    for line in provenance_lines(found):
        click.echo(line)
    examined = judged.examined
    if examined.error is None:
        click.echo(f"OK            {visible(judged.where)}")
        raise SystemExit(EXIT_OK)
    for problem in examined.problems:
        click.echo(visible(f"{judged.where}: {problem}"))
    if examined.untold:
        click.echo(f"{examined.untold:,} more lines have problems of other kinds")
    raise examined.error


@corpus.command(short_help="Show where a trace comes from and what it holds.")
@click.argument("name_or_file")
@_FOLDERS
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def show(name_or_file: str, corpus_dirs: tuple[Path, ...], as_json: bool) -> None:  # noqa: FBT001
    """Provenance of a corpus, and facts about its slice when a proven trace is here."""
    import json

    from replay_parity.publish.corpus import facts_lines, provenance_lines
    from replay_parity.stages.corpus_named import named_corpus
    from replay_parity.stages.corpus_verify import facts_of, shown_document
    from replay_parity.system.progress import Silent

    found = named_corpus(name_or_file)
    facts = facts_of(found, folders=corpus_dirs, settings=_settings(), progress=Silent())
    if as_json:
        click.echo(json.dumps(shown_document(found, facts), indent=2))
        return
    for line in provenance_lines(found):
        click.echo(line)
    if facts is None:
        click.echo(f"No proven trace is here, so nothing is known of its rows: 'corpus verify {found.name}' says why.")
        return
    for line in facts_lines(facts):
        click.echo(line)


@corpus.command("slice", short_help="Cut a contiguous slice of whole lines.")
@click.argument("file", type=_ANY_FILE)
@click.option("--start", type=click.IntRange(min=0), required=True, help="First row, from 0.")
@click.option("--rows", type=click.IntRange(min=1), required=True, help="Number of rows.")
@click.option("--format", "form", default="mooncake", show_default=True, help="mooncake or agentic_mooncake.")
@click.option("--block-size", type=click.IntRange(1, 2**20), default=512, show_default=True, help="Tokens a hash id.")
@click.option("--output", type=FILE, required=True, help="The slice; an existing file is never changed.")
@click.option("--corpus-file", type=FILE, help="Write the proposed corpus file here instead of printing it.")
@click.option("--name", help="Name of the corpus; that of the output by default.")
@click.option("--repository", help="Where the trace is published, such as https://github.com/OWNER/REPO.")
@click.option("--commit", help="Commit of that repository.")
@click.option("--path", "place", help="Path of the trace in that repository.")
@click.option("--licence", help="SPDX name of the licence of the data.")
def slice_(
    file: Path, start: int, rows: int, form: str, block_size: int, output: Path, corpus_file: Path | None, **about: str
) -> None:
    """Write ROWS rows of a trace as they are, and propose the corpus file that names them.

    The rows are checked; fewer than asked for are refused, none is repeated.
    """
    from replay_parity.corpus.cut import Wanted
    from replay_parity.stages.corpus_slice import Origin, proposed, slice_trace, write_proposed

    about["path"] = about.pop("place")
    origin = Origin(**about)
    found = slice_trace(file, Wanted(start, rows, form, block_size), output=output)
    document = proposed(found, origin, trace=file, output=corpus_file or output)
    click.echo(f"{rows:,} rows, SHA-256 {found.scan.slice_sha256}", err=corpus_file is None)
    if corpus_file is None:
        click.echo(document.decode(), nl=False)
    else:
        write_proposed(corpus_file, document)
    raise SystemExit(EXIT_OK)


def _settings() -> Settings:
    from replay_parity.settings import Settings

    return Settings.from_environment(os.environ)
