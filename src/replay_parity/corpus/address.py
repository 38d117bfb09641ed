"""Where the bytes of an upstream trace are fetched from: one file at one commit, never a branch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from replay_parity.campaign.corpus_file import Upstream
from replay_parity.errors import BadInputError, CorpusError

_RAW = "https://raw.githubusercontent.com/{owner}/{repo}/{commit}/{path}"
# GitHub gives the contents of files in Git LFS under another address; the raw one has a pointer to them.
_LFS = "https://media.githubusercontent.com/media/{owner}/{repo}/{commit}/{path}"
_GITHUB = re.compile(r"https://github\.com/(?P<owner>[A-Za-z0-9._-]+)/(?P<repo>[A-Za-z0-9._-]+?)(?:\.git)?/?")
_PLACES = re.compile(r"\{(?:owner|repo|commit|path|sha256)\}")
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True)
class Addresses:
    """The address of a trace, and the one to ask when that has only a pointer of Git LFS."""

    file: str
    lfs: str | None


def addresses(source: Upstream, *, template: str | None, lfs_template: str | None, where: str) -> Addresses:
    """The addresses of the trace at its commit; templates of the user stand in for GitHub's own.

    A template may name `{owner}`, `{repo}`, `{commit}`, `{path}` and `{sha256}`. Raises BadInputError for one that does
    not pin the trace or is no https address, CorpusError for a source that no address is known for.
    """
    if template is None:
        return Addresses(_filled(_RAW, source, where), _filled(lfs_template or _LFS, source, where))
    lfs = None if lfs_template is None else _filled(lfs_template, source, where)
    return Addresses(_filled(template, source, where), lfs)


def is_allowed(url: str) -> bool:
    """Whether an address may be asked at all: https, or plain http on this machine."""
    parts = urlsplit(url)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    )


def _filled(template: str, source: Upstream, where: str) -> str:
    names = set(_PLACES.findall(template))
    if "{commit}" not in names and "{sha256}" not in names:
        raise BadInputError(
            f"the address template '{template}' names neither {{commit}} nor {{sha256}}, so it is not pinned",
            hint="correct REPLAY_PARITY_TRACE_URL or REPLAY_PARITY_TRACE_LFS_URL",
        )
    values = {"{commit}": source.commit, "{path}": quote(_clean(source.path, where)), "{sha256}": source.full_sha256}
    if names & {"{owner}", "{repo}"}:
        found = _GITHUB.fullmatch(source.repository)
        if found is None:
            raise CorpusError(
                f"is published in {source.repository}, from where nothing can be fetched: only from "
                "https://github.com/OWNER/REPO",
                where=where,
                hint="give a folder that holds the trace with --corpus-dir, or set REPLAY_PARITY_TRACE_URL",
            )
        values |= {"{owner}": found["owner"], "{repo}": found["repo"]}
    url = _PLACES.sub(lambda place: values[place.group()], template)
    if not is_allowed(url):
        raise BadInputError(f"the address '{url}' does not start with https://", hint="correct REPLAY_PARITY_TRACE_URL")
    if "@" in urlsplit(url).netloc:
        raise BadInputError("the address of the trace holds a name or a password", hint="none is needed: leave it out")
    return url


def _clean(path: str, where: str) -> str:
    if path.startswith("/") or any(part in {"", ".", ".."} for part in path.split("/")):
        raise CorpusError(f"has the path '{path}', which is not one inside a repository", where=where)
    return path
