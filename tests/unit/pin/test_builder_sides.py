"""Which sides are built, in which order, and what stands between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from replay_parity.errors import BuildError, InfrastructureError
from replay_parity.pin import builder as builder_module
from replay_parity.pin import cargo as cargo_module
from replay_parity.pin.preparation import Preparation, Side
from replay_parity.system.locks import host_lock
from tests.support.tiny import Engines, Workshop, artifact, identity


@pytest.fixture
def laid_out(monkeypatch: pytest.MonkeyPatch) -> list[Side]:
    """The sides whose files came into a slot, as it happens."""
    seen: list[Side] = []
    real = Preparation.check_out

    def noted(self: Preparation, slot: object, side: Side, revision: object) -> None:
        seen.append(side)
        real(self, slot, side, revision)  # type: ignore[arg-type]

    monkeypatch.setattr(Preparation, "check_out", noted)
    return seen


def test_the_baseline_alone_is_built_before_any_candidate_is_there(
    workshop: Workshop, engines: Engines, laid_out: list[Side]
) -> None:
    old = workshop.pin(engines.folder, engines.engine(1))
    new = workshop.pin(engines.folder, engines.engine(2))
    alone = workshop.builder().run({"baseline": old})
    assert (list(alone.sides), alone.compiled, alone.lock_differences) == (["baseline"], ("baseline",), ())
    assert laid_out == ["baseline"]
    again = workshop.builder().run({"baseline": old})
    assert (again.sides, again.compiled) == (alone.sides, ())
    assert laid_out == ["baseline"], "recalled without a checkout"
    both = workshop.builder().run({"baseline": old, "candidate": new})
    assert both.compiled == ("candidate",)
    assert both.sides["baseline"] == alone.sides["baseline"]
    assert identity(artifact(both, "candidate"))["answer"] == 2


def test_one_revision_on_both_sides_is_built_once(workshop: Workshop, engines: Engines, laid_out: list[Side]) -> None:
    commit = engines.engine(1)
    # The same commit by two names.
    revisions: dict[Side, object] = {
        "baseline": workshop.pin(engines.folder, commit),
        "candidate": workshop.pin(engines.folder, "main"),
    }
    outcome = workshop.builder().run(revisions)  # type: ignore[arg-type]
    assert outcome.sides["baseline"] == outcome.sides["candidate"]
    assert (outcome.compiled, outcome.lock_differences, laid_out) == (("baseline",), (), ["baseline"])
    assert len(list((workshop.cache / "artifacts").iterdir())) == 1
    assert identity(artifact(outcome, "candidate"))["answer"] == 1


def test_one_revision_that_does_not_compile_fails_on_both_sides(workshop: Workshop, engines: Engines) -> None:
    commit = engines.broken("pub fn answer() -> u64 { missing() }")
    outcome = workshop.pair(engines.folder, commit, commit)
    assert outcome.compiled == ()
    for error in outcome.sides.values():
        assert isinstance(error, BuildError)
        assert error.kind == "revision"
    alone = workshop.builder().run({"baseline": workshop.pin(engines.folder, commit)})
    assert isinstance(alone.sides["baseline"], BuildError)


def test_a_candidate_is_not_built_without_its_baseline(workshop: Workshop, engines: Engines) -> None:
    revision = workshop.pin(engines.folder, engines.engine(1))
    for sides in ({"candidate": revision}, {}):
        with pytest.raises(ValueError, match="without its baseline"):
            workshop.builder().run(sides)  # type: ignore[arg-type]


def test_another_folder_for_host_locks_does_not_share_the_slot(
    workshop: Workshop, engines: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    revision = workshop.pin(engines.folder, engines.engine(1))
    monkeypatch.setattr(builder_module, "_LOCK_WAIT_SECONDS", 0.2)
    builder = workshop.builder()
    builder.locks = tmp_path / "other-locks"
    with (
        host_lock(workshop.root, "slot", shared=False, timeout=1),
        pytest.raises(InfrastructureError, match=r"the host lock 'slot' was not free within"),
    ):
        builder.run({"baseline": revision})
    assert builder.run({"baseline": revision}).compiled == ("baseline",)


@pytest.mark.parametrize("name", [".cargo/config.toml", "rust-toolchain.toml"])
def test_what_a_build_script_leaves_above_the_slot_stops_the_next_step(
    workshop: Workshop, engines: Engines, name: str
) -> None:
    left = workshop.root / name
    engines.core.mkdir(parents=True)
    (engines.core / "build.rs").write_text(
        f'fn main() {{ std::fs::create_dir_all("{left.parent}").unwrap(); std::fs::write("{left}", "").unwrap(); }}'
    )
    old = engines.engine(1)
    (engines.core / "build.rs").unlink()
    new = engines.engine(2)
    with pytest.raises(InfrastructureError, match=r"builds cannot run below .*: cargo would read it"):
        workshop.pair(engines.folder, old, new)
    assert not (workshop.logs / "build-candidate.log").exists()
    assert len(list((workshop.cache / "artifacts").iterdir())) == 1


@pytest.mark.parametrize("step", ["vendor", "build"])
def test_no_cargo_starts_below_a_folder_that_configures_it(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    cargo = workshop.cargo
    slot = cargo.root / "slot"
    slot.mkdir()
    (cargo.root / ".cargo").mkdir()
    monkeypatch.setattr(cargo_module, "run", lambda *_, **__: pytest.fail("started cargo"))
    log = workshop.folder / "log"
    steps: dict[str, Callable[[], object]] = {
        "vendor": lambda: cargo.vendor(slot, log=log),
        "build": lambda: cargo.build(slot, [], variables={}, flags=[], messages=log, log=log, timeout=1.0, tick=None),
    }
    with pytest.raises(InfrastructureError, match=f"builds cannot run below {cargo.root / '.cargo'}"):
        steps[step]()
