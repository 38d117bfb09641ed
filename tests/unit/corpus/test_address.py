from __future__ import annotations

import pytest

from replay_parity.campaign.corpus_file import Upstream
from replay_parity.corpus.address import Addresses, addresses, is_allowed
from replay_parity.errors import BadInputError, CorpusError

COMMIT, SHA256 = "1" * 40, "2" * 64


def source(**changes: object) -> Upstream:
    fields = {
        "kind": "upstream",
        "repository": "https://github.com/some/traces",
        "commit": COMMIT,
        "path": "a folder/trace#1.jsonl",
        "licence": "Apache-2.0",
        "full_rows": 1,
        "full_sha256": SHA256,
    }
    return Upstream.model_validate(fields | changes)


def found(template: str | None = None, lfs: str | None = None, **changes: object) -> Addresses:
    return addresses(source(**changes), template=template, lfs_template=lfs, where="corpus c")


@pytest.mark.parametrize("ending", ["", "/", ".git"])
def test_github_is_asked_for_the_file_at_its_commit(ending: str) -> None:
    assert found(repository=f"https://github.com/some/traces{ending}") == Addresses(
        f"https://raw.githubusercontent.com/some/traces/{COMMIT}/a%20folder/trace%231.jsonl",
        f"https://media.githubusercontent.com/media/some/traces/{COMMIT}/a%20folder/trace%231.jsonl",
    )


def test_a_mirror_may_be_of_any_repository() -> None:
    mirror = "https://mirror.example/{sha256}"
    assert found(mirror, repository="archive:traces") == Addresses(f"https://mirror.example/{SHA256}", None)
    assert found(mirror, "https://lfs.example/{commit}").lfs == f"https://lfs.example/{COMMIT}"


@pytest.mark.parametrize(
    "repository",
    ["some/traces", "https://gitlab.com/some/traces", "https://github.com/some", "https://github.com.evil/a/b"],
)
def test_an_unknown_host_is_refused_with_what_to_do(repository: str) -> None:
    with pytest.raises(
        CorpusError, match=r"nothing can be fetched: only from https://github.com/OWNER/REPO .*corpus-dir"
    ):
        found(repository=repository)


@pytest.mark.parametrize("path", ["/etc/passwd", "a/../b", "a//b", "./a"])
def test_a_path_stays_inside_its_repository(path: str) -> None:
    with pytest.raises(CorpusError, match="not one inside a repository"):
        found(path=path)


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("https://mirror.example/{owner}/main/{path}", "names neither {commit} nor {sha256}, so it is not pinned"),
        ("http://mirror.example/{commit}", "does not start with https://"),
        ("file:///{commit}", "does not start with https://"),
        ("{commit}", "does not start with https://"),
        ("https://me:secret@mirror.example/{commit}", "holds a name or a password"),
    ],
)
def test_a_template_that_is_refused(template: str, sentence: str) -> None:
    with pytest.raises(BadInputError) as caught:
        found(template)
    assert sentence in str(caught.value)


def test_plain_http_is_for_this_machine() -> None:
    assert is_allowed("http://127.0.0.1:8000/x")
    assert is_allowed("http://[::1]/x")
    assert not is_allowed("http://127.0.0.1.example.org/x")
    assert not is_allowed("https:///x")
