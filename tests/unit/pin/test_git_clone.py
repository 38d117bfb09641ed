"""Objects of an address taken from a local clone: found by id or name, nothing in it changed, its work tree ignored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from replay_parity.campaign.sources import GitSource
from replay_parity.errors import RevisionError
from replay_parity.pin.git_place import Repository, locate, recorded
from replay_parity.pin.models import GitRevision
from replay_parity.pin.resolve import Sources, check_relationship
from tests.support.tiny import Engines, Workshop
from tests.unit.pin.test_git_checkout import state_of

ADDRESS = "https://example.invalid/owner/name"

CloneOf = Callable[..., Engines]


@pytest.fixture
def clone(engines: Engines, tmp_path: Path) -> CloneOf:
    """Clones of the repository, as a job makes them: HEAD detached, only remote-tracking branches."""

    def make(*options: str, commit: str) -> Engines:
        made = Engines.__new__(Engines)
        made.folder = tmp_path / f"clone-{len(list(tmp_path.glob('clone-*')))}"
        engines.git("clone", "--quiet", "--no-checkout", *options, f"file://{engines.folder}", str(made.folder))
        made.git("checkout", "--quiet", "--detach", commit)
        made.git("branch", "--delete", "--force", "main")
        return made

    return make


def sources(workshop: Workshop, folder: Path, address: str = ADDRESS) -> Sources:
    return Sources(workshop.cache, workshop.folder, workshop.environment, lambda: workshop.cargo, {address: folder})


def source(revision: str, address: str = ADDRESS) -> GitSource:
    return GitSource(git=address, revision=revision)


def test_the_address_is_recorded_and_the_clone_is_read(workshop: Workshop, engines: Engines, clone: CloneOf) -> None:
    old, new = engines.engine(1), engines.engine(2)
    here = sources(workshop, clone(commit=old).folder)
    revision = here.resolve(source(new))
    assert isinstance(revision, GitRevision)
    assert (revision.repository, revision.commit) == (ADDRESS, new)
    # As another job: it knows the recorded revision, its own clone, and nothing else.
    elsewhere = sources(
        Workshop(workshop.folder / "other", workshop.toolchain, workshop.environment), here_folder(here)
    )
    elsewhere.lay_out(revision, workshop.folder / "out")
    assert "2" in (workshop.folder / "out" / "crates" / "core" / "src" / "lib.rs").read_text()
    assert "is an ancestor" in check_relationship(None, here.resolve(source(old)), revision, here)


def here_folder(here: Sources) -> Path:
    return here.checkouts[ADDRESS]


def test_a_commit_that_no_name_leads_to_is_found(workshop: Workshop, engines: Engines, clone: CloneOf) -> None:
    made = clone(commit=engines.engine(1))
    merge = made.engine(3)
    made.git("checkout", "--quiet", "--detach", "HEAD~1")
    made.git("update-ref", "refs/remotes/pull/7/merge", made.git("commit-tree", "-m", "x", f"{merge}^{{tree}}"))
    odd = made.git("rev-parse", "refs/remotes/pull/7/merge")
    here = sources(workshop, made.folder)
    for commit in (merge, odd):
        assert here.resolve(source(commit)).id == f"git:{commit}"


def test_names_are_those_of_the_address(workshop: Workshop, engines: Engines, clone: CloneOf) -> None:
    commit = engines.engine(1)
    engines.git("tag", "v1")
    made = clone(commit=commit)
    mine = made.engine(5)
    made.git("branch", "main", mine)
    made.git("branch", "only-here", mine)
    here = sources(workshop, made.folder)
    found = {name: here.resolve(source(name)) for name in ("main", "only-here", "v1", "HEAD", commit[:10])}
    assert {name: revision.id for name, revision in found.items()} == {
        "main": f"git:{commit}",
        "only-here": f"git:{mine}",
        "v1": f"git:{commit}",
        "HEAD": f"git:{mine}",
        commit[:10]: f"git:{commit}",
    }


def test_a_dirty_clone_does_not_matter_and_stays_as_it_is(
    workshop: Workshop, engines: Engines, clone: CloneOf, tmp_path: Path
) -> None:
    commit = engines.engine(1)
    made = clone(commit=commit)
    (made.core / "src" / "lib.rs").write_text("// not what was committed")
    (made.core / "new.rs").write_text("")
    hook = made.folder / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path / 'witness'}\n")
    hook.chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "uploadpack.packObjectsHook", "core.alternateRefsCommand"):
        made.git("config", key, str(hook))
    before = state_of(made.folder)
    here = sources(workshop, made.folder)
    revision = here.resolve(source(commit))
    here.lay_out(revision, workshop.folder / "out")
    assert "{ 1 }" in (workshop.folder / "out" / "crates" / "core" / "src" / "lib.rs").read_text()
    assert not (workshop.folder / "out" / "crates" / "core" / "new.rs").exists()
    assert state_of(made.folder) == before
    assert not (tmp_path / "witness").exists()


def test_a_clone_without_the_commit_says_what_to_do(workshop: Workshop, engines: Engines, clone: CloneOf) -> None:
    old, new = engines.engine(1), engines.engine(2)
    made = clone("--depth=1", commit=new)
    here = sources(workshop, made.folder)
    for name in (old, "topic"):
        with pytest.raises(RevisionError) as caught:
            here.resolve(source(name))
        said = str(caught.value)
        assert f"the checkout {made.folder} of {ADDRESS} has no commit" in said
        assert "fetch-depth: 0" in said
        assert len(said.splitlines()) == 1
    whole = clone(commit=new)
    with pytest.raises(RevisionError, match="has no commit") as caught:
        sources(workshop, whole.folder).resolve(source("0" * 40))
    assert "fetch-depth" not in str(caught.value)


def test_a_clone_that_is_cut_off_proves_no_ancestry_until_it_is_whole(
    workshop: Workshop, engines: Engines, clone: CloneOf
) -> None:
    old, middle, new = engines.engine(1), engines.engine(2), engines.engine(3)
    made = clone("--depth=2", commit=new)
    other = clone(commit=old)
    fork = f"{ADDRESS}-fork"
    here = Sources(
        workshop.cache,
        workshop.folder,
        workshop.environment,
        lambda: workshop.cargo,
        {ADDRESS: made.folder, fork: other.folder},
    )
    pair = here.resolve(source(old, fork)), here.resolve(source(new))
    with pytest.raises(RevisionError, match=r"is shallow: its history ends before .*fetch-depth: 0"):
        check_relationship(None, *pair, here)
    assert here.mirror(source(new)).is_ancestor(middle, new), "what is there is proven"
    made.git("fetch", "--quiet", "--unshallow")
    assert check_relationship(None, *pair, sources(workshop, made.folder))


def test_a_mirror_of_a_whole_clone_serves_a_later_shallow_one(
    workshop: Workshop, engines: Engines, clone: CloneOf
) -> None:
    """A runner keeps its cache while each job checks the repository out anew."""
    old, middle = engines.engine(1), engines.engine(2)
    made = clone(commit=middle)
    sources(workshop, made.folder).resolve(source(middle))
    place = made.folder
    place.rename(place.with_name("earlier"))
    new = engines.engine(3)
    clone("--depth=2", commit=new).folder.rename(place)
    later = sources(workshop, place)
    for commit in (old, middle, new):
        assert later.resolve(source(commit)).id == f"git:{commit}"
    assert later.mirror(source(new)).is_ancestor(old, new)


def test_no_clone_at_the_place_is_one_sentence(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for folder in (tmp_path / "plain", tmp_path / "nowhere"):
        with pytest.raises(RevisionError, match=f"{folder} is not a git repository") as caught:
            sources(workshop, folder).resolve(source("main"))
        assert len(str(caught.value).splitlines()) == 1


def test_an_address_is_the_same_however_it_ends(tmp_path: Path) -> None:
    known = {f"{ADDRESS}.git/": tmp_path}
    for address in (ADDRESS, f"{ADDRESS}/", f"{ADDRESS}.git"):
        assert locate(source("main", address), base=tmp_path, checkouts=known) == Repository(address, None, tmp_path)
        assert recorded(address, checkouts=known).place == str(tmp_path)
    for other in (f"{ADDRESS}-2", "https://example.invalid/owner"):
        assert locate(source("main", other), base=tmp_path, checkouts=known).place == other
    assert recorded("/a/folder", checkouts={"/a/folder": tmp_path}) == Repository("/a/folder", Path("/a/folder"))


def test_what_came_from_a_clone_does_not_answer_for_the_address(
    workshop: Workshop, engines: Engines, clone: CloneOf
) -> None:
    here = sources(workshop, clone(commit=engines.engine(1)).folder)
    assert here.mirror(source("main")).path != workshop.sources.mirror(source("main")).path


def test_a_partial_clone_is_told_apart_from_a_broken_one(workshop: Workshop, engines: Engines, clone: CloneOf) -> None:
    engines.git("config", "uploadpack.allowFilter", "true")
    engines.git("config", "uploadpack.allowAnySHA1InWant", "true")
    engines.engine(1)
    made = clone("--filter=blob:none", commit=engines.engine(2))
    before = state_of(made.folder)
    with pytest.raises(RevisionError, match="is a partial clone") as caught:
        sources(workshop, made.folder).resolve(source("main"))
    assert "without a filter" in str(caught.value)
    assert state_of(made.folder) == before, "git fetched nothing into it"
