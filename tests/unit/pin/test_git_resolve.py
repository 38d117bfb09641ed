"""Names to immutable ids: what is found, what is refused, and that nothing is started for a hostile name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from replay_parity.campaign.sources import GitSource
from replay_parity.errors import InfrastructureError, RevisionError
from replay_parity.pin import git_command
from replay_parity.pin.git import Mirror
from replay_parity.pin.git_place import Repository, locate, recorded
from replay_parity.pin.models import GitRevision
from replay_parity.pin.resolve import Sources, check_relationship
from tests.support.tiny import Engines, Workshop


@pytest.fixture
def mirror(engines: Engines, tmp_path: Path, environment: Mapping[str, str]) -> Mirror:
    return Mirror(Repository(str(engines.folder), engines.folder), cache=tmp_path / "cache", environment=environment)


def source(repository: Path | str, revision: str, core: str = "crates/core") -> GitSource:
    return GitSource(git=str(repository), revision=revision, core=core)


def test_every_kind_of_name_leads_to_the_full_commit_and_its_tree(engines: Engines, mirror: Mirror) -> None:
    commit = engines.engine(1)
    engines.git("tag", "light")
    engines.git("tag", "--annotate", "heavy", "--message", "a tag object")
    engines.git("branch", "feature/x-1")
    tree = engines.git("rev-parse", "HEAD^{tree}")
    asked = {
        commit: "commit",
        commit.upper(): "commit",
        engines.git("rev-parse", "heavy"): "commit",
        commit[:12]: "short commit",
        "main": "branch",
        "feature/x-1": "branch",
        "light": "tag",
        "heavy": "tag",
        "HEAD": "HEAD",
    }
    for name, kind in asked.items():
        found = mirror.resolve(source(engines.folder, name))
        assert (found.commit, found.tree, found.asked, found.asked_as) == (commit, tree, name, kind)
        assert found.id == f"git:{commit}"


def test_a_branch_and_a_tag_of_one_name_must_agree(engines: Engines, mirror: Mirror) -> None:
    engines.engine(1)
    engines.git("tag", "same")
    engines.git("branch", "same")
    assert mirror.resolve(source(engines.folder, "same")).asked_as == "branch"
    engines.git("tag", "twice")
    engines.engine(2)
    engines.git("branch", "twice")
    again = Mirror(mirror._repository, cache=mirror.path.parents[2], environment=dict(mirror._git._environment))
    with pytest.raises(RevisionError, match="'twice' is a branch and a tag with different commits"):
        again.resolve(source(engines.folder, "twice"))


@pytest.mark.parametrize("name", ["nothing-of-that-name", "0123abc", "0" * 40, "refs/heads/main", "main.lock", "main/"])
def test_what_is_not_there_is_refused_by_name(engines: Engines, mirror: Mirror, name: str) -> None:
    engines.engine(1)
    with pytest.raises(RevisionError, match=name) as caught:
        mirror.resolve(source(engines.folder, name))
    assert caught.value.exit_code == 2
    assert len(str(caught.value).splitlines()) == 1


def test_a_short_id_of_two_commits_is_refused(
    engines: Engines, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = engines.engine(1)
    # Seven digits rarely collide, so git's own answer for ambiguity is played: no id.
    monkeypatch.setattr(mirror._bare, "commit_of", lambda _: None)
    with pytest.raises(RevisionError, match="does not name exactly one commit"):
        mirror.resolve(source(engines.folder, commit[:9]))


@pytest.mark.parametrize(
    "name",
    ["--upload-pack=touch pwned", "-n", "--", "a b", "main\n", "x;y", "HEAD^", "main~1", "@{-1}", "", "é", "a:b"],
)
def test_no_process_is_started_for_a_name_that_git_may_misread(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    started: list[object] = []
    monkeypatch.setattr(git_command, "run", started.append)
    hostile = GitSource.model_construct(git="x", revision=name, core="crates/core")
    with pytest.raises(RevisionError, match="is not a name of a revision"):
        mirror.resolve(hostile)
    assert started == []


def test_the_mirror_follows_a_branch_and_keeps_the_recorded_commit(workshop: Workshop, engines: Engines) -> None:
    first = engines.engine(1)
    before = workshop.pin(engines.folder, "main")
    # Rewritten, not only moved on: nothing in the repository leads to the first commit any more.
    engines.git("checkout", "--quiet", "--orphan", "other")
    second = engines.engine(2)
    engines.git("branch", "--force", "main", "other")
    engines.git("checkout", "--quiet", "main")
    engines.git("branch", "--delete", "--force", "other")
    engines.git("reflog", "expire", "--expire=now", "--all")
    engines.git("gc", "--quiet", "--prune=now")
    after = workshop.pin(engines.folder, "main")
    assert isinstance(before, GitRevision)
    assert isinstance(after, GitRevision)
    assert (before.commit, after.commit) == (first, second)
    workshop.sources.lay_out(before, workshop.folder / "out")
    assert "1" in (workshop.folder / "out" / "crates" / "core" / "src" / "lib.rs").read_text()
    assert workshop.pin(engines.folder, first).id == before.id


def test_a_recorded_revision_is_laid_out_when_its_repository_is_gone(workshop: Workshop, engines: Engines) -> None:
    engines.engine(1)
    revision = workshop.pin(engines.folder, "main")
    engines.folder.rename(engines.folder.with_name("moved"))
    workshop.sources.lay_out(revision, workshop.folder / "out")
    assert (workshop.folder / "out" / "crates" / "core" / "Cargo.toml").is_file()


def test_a_deleted_or_replaced_branch_is_gone_from_the_mirror_too(workshop: Workshop, engines: Engines) -> None:
    engines.engine(1)
    engines.git("branch", "topic")
    engines.git("branch", "short-lived")
    workshop.pin(engines.folder, "topic")
    engines.git("branch", "--delete", "--force", "topic", "short-lived")
    engines.git("branch", "topic/part")
    assert workshop.pin(engines.folder, "topic/part").asked == "topic/part"
    with pytest.raises(RevisionError, match="no commit, branch or tag 'short-lived'"):
        workshop.pin(engines.folder, "short-lived")


def test_a_head_that_names_no_branch_does_not_hide_the_others(workshop: Workshop, engines: Engines) -> None:
    commit = engines.engine(1)
    engines.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    engines.git("rm", "-r", "--quiet", "--cached", ".")
    engines.git("config", "core.bare", "true")
    assert isinstance(found := workshop.pin(engines.folder, "main"), GitRevision)
    assert found.commit == commit
    with pytest.raises(RevisionError, match="'HEAD'"):
        workshop.pin(engines.folder, "HEAD")


def test_ancestry_is_checked_in_both_directions(engines: Engines, mirror: Mirror) -> None:
    old, new = engines.engine(1), engines.engine(2)
    mirror.ensure(old)
    mirror.ensure(new)
    assert mirror.is_ancestor(old, new)
    assert mirror.is_ancestor(old, old)
    assert not mirror.is_ancestor(new, old)
    with pytest.raises(InfrastructureError, match="git cannot compare"):
        mirror.is_ancestor(old, "0" * 40)


def test_ancestry_crosses_a_fork(workshop: Workshop, engines: Engines, tmp_path: Path) -> None:
    old = engines.engine(1)
    fork = tmp_path / "fork"
    engines.git("clone", "--quiet", str(engines.folder), str(fork))
    theirs = Engines.__new__(Engines)
    theirs.folder = fork
    new = theirs.engine(2)
    aside = engines.engine(3)
    sources: Sources = workshop.sources
    upstream, forked = source(engines.folder, old), source(fork, new)
    words = check_relationship(None, sources.resolve(upstream), sources.resolve(forked), sources)
    assert words == "the baseline is an ancestor of the candidate"
    beside = source(engines.folder, aside)
    with pytest.raises(RevisionError, match=f"the baseline {aside} is not an ancestor of the candidate {new}"):
        check_relationship(None, sources.resolve(beside), sources.resolve(forked), sources)
    stated = check_relationship(
        "two experiments",
        sources.resolve(beside),
        sources.resolve(forked),
        sources,
    )
    assert stated == "two experiments"


def test_a_shallow_clone_resolves_and_says_when_its_history_is_too_short(
    workshop: Workshop, engines: Engines, tmp_path: Path
) -> None:
    old, new = engines.engine(1), engines.engine(2)
    shallow = tmp_path / "shallow"
    engines.git("clone", "--quiet", "--depth=1", f"file://{engines.folder}", str(shallow))
    assert isinstance(found := workshop.pin(shallow, "HEAD"), GitRevision)
    assert found.commit == new
    sources = workshop.sources
    upstream, here = source(engines.folder, old), source(shallow, new)
    with pytest.raises(RevisionError, match="is a shallow clone: its history ends before") as caught:
        check_relationship(None, sources.resolve(upstream), sources.resolve(here), sources)
    assert "git fetch --unshallow" in str(caught.value)
    theirs = Engines.__new__(Engines)
    theirs.folder = shallow
    theirs.git("fetch", "--quiet", "--unshallow")
    fresh = workshop.sources
    assert check_relationship(None, fresh.resolve(upstream), fresh.resolve(source(shallow, "HEAD")), fresh)


def test_a_crate_elsewhere_is_found_and_a_missing_one_is_refused(workshop: Workshop, engines: Engines) -> None:
    engines.engine(1)
    engines.core.rename(engines.folder / "engine")
    engines.commit("moved")
    assert isinstance(found := workshop.pin(engines.folder, "main", core="engine"), GitRevision)
    assert found.core == "engine"
    with pytest.raises(RevisionError, match="has no crate at 'crates/core'"):
        workshop.pin(engines.folder, "main")


def test_a_place_that_is_no_repository_is_one_sentence(workshop: Workshop, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    for place, words in {
        str(plain): f"{plain} is not a git repository",
        "nowhere": "there is no git repository at 'nowhere'",
        "file:///nonexistent": "file:///nonexistent is not a git repository",
        "~nobody-of-that-name/x": "there is no git repository at '~nobody-of-that-name/x'",
        "ext::sh -c touch% pwned": "is not fetched from; use https, ssh, file or a local folder",
        "http://example.invalid/x": "is not fetched from; use https, ssh, file or a local folder",
    }.items():
        with pytest.raises(RevisionError, match=words) as caught:
            workshop.sources.resolve(source(place, "main"))
        assert len(str(caught.value).splitlines()) == 1


def test_a_url_that_cannot_be_reached_is_one_sentence_of_infrastructure(workshop: Workshop) -> None:
    with pytest.raises(InfrastructureError, match=r"cannot fetch from https://example\.invalid/x\.git: ") as caught:
        workshop.sources.resolve(source("https://example.invalid/x.git", "main"))
    assert caught.value.exit_code == 3
    assert len(str(caught.value).splitlines()) == 1


def test_a_folder_inside_a_repository_is_not_taken_for_it(workshop: Workshop, engines: Engines) -> None:
    engines.engine(1)
    with pytest.raises(RevisionError, match="lies inside a git repository"):
        workshop.pin(engines.core, "main")


def test_places_are_relative_to_the_campaign_and_recorded_absolute(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    assert locate(source("here", "main"), base=tmp_path).url == str(tmp_path / "here")
    for url in ("https://example.invalid/x", "ssh://git@example.invalid/x", "git@example.invalid:x/y", "file:///x"):
        assert locate(source(url, "main"), base=tmp_path) == Repository(url, None) == recorded(url)
    assert recorded("/gone/away") == Repository("/gone/away", Path("/gone/away"))
