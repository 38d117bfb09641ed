from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from replay_parity.campaign.base import CommitId, Identifier, Location, Sentence
from replay_parity.campaign.models import Build, Campaign, RowReference
from replay_parity.campaign.row import PressureBounds, TraceWorkload
from replay_parity.campaign.sources import CrateSource, GitSource, RevisionName, Version

_BUILD = {"toolchain": "path", "profile": "release", "flags": [], "features": []}


def _accepts(kind: Any, value: object) -> bool:
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (
            Identifier,
            ["a", "a-b", "0.1.0-dev.2", "a" * 80],
            ["", "A", "-a", "a-", "a/b", "a b", ".a", "a\n", "é", "a" * 81, 1, None],
        ),
        (CommitId, ["0" * 40, "f" * 64], ["0" * 39, "F" * 40, "0" * 41, "main", "0" * 40 + "\n"]),
        (
            Sentence,
            ["a", "Ünïcode, too: 你好", "a" * 500],
            ["", "a\nb", "\x1b[31m", "a\x85b", "a\u2028b", "a\u202eb", "a\u2066b", "a" * 501],
        ),
        (Location, ["/a b", "x.yaml", "https://example.invalid/r.git"], ["", "-x", "--upload-pack=x", "a\nb", "a\0b"]),
        (
            RevisionName,
            ["main", "v1.0", "feature/x+1", "HEAD", "a@b", "0" * 40],
            ["", "-x", "--upload-pack=x", "a b", "a..b", "a@{1}", "a^", "a~1", "a:b", "a\n", "/a", ".a", "a" * 256],
        ),
        (
            Version,
            ["0.12.1", "0.1.0-dev.2", "1.2.3+build.4", "^0.12", "~0.12.1", ">=0.12, <0.14", "=0.12.1"],
            ["", "0.12", "v0.12.1", "*", "latest", "0.12.1 ", "-1", "0.12.1\n"],
        ),
    ],
)
def test_names_are_safe_wherever_they_are_used(kind: Any, good: list[object], bad: list[object]) -> None:
    assert [value for value in good if not _accepts(kind, value)] == []
    assert [value for value in bad if _accepts(kind, value)] == []


@pytest.mark.parametrize(
    ("model", "document"),
    [
        (Build, _BUILD | {"timeout_minutes": "60"}),
        (Build, _BUILD | {"timeout_minutes": True}),
        (Build, _BUILD | {"toolchain": 1.93}),
        (CrateSource, {"version": "0.12.1", "dirty": "yes"}),
        (CrateSource, {"version": "0.12.1", "dirty": 1}),
        (TraceWorkload, {"kind": "trace", "arrival_speedup_ratio": "4"}),
        (TraceWorkload, {"kind": "trace", "arrival_speedup_ratio": True}),
        (TraceWorkload, {"kind": "trace", "arrival_speedup_ratio": float("inf")}),
        (PressureBounds, {"kind": "vllm_preemptions", "minimum": 1.0, "maximum": 3}),
    ],
)
def test_no_value_is_converted(model: Any, document: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(document)


@pytest.mark.parametrize("version", [True, 1.0, "1", 0, 2, None])
def test_only_the_number_1_is_a_schema_version(version: object) -> None:
    document = {
        "schema_version": version,
        "name": "mine",
        "title": "Mine",
        "baseline": {"version": "0.12.0"},
        "candidate": {"version": "0.12.1"},
        "relationship": {"ancestor": True},
        "build": _BUILD,
        "rows": ["a"],
    }
    assert Campaign.model_validate(document | {"schema_version": 1}).schema_version == 1
    with pytest.raises(ValidationError, match="must be the number 1"):
        Campaign.model_validate(document)


@pytest.mark.parametrize("features", ["all", ["all"], ["python", "all-features"], ["--all-features"], ["*"]])
def test_all_features_are_refused_in_every_spelling(features: object) -> None:
    with pytest.raises(ValidationError, match="'all features' is refused"):
        Build.model_validate(_BUILD | {"features": features})


def test_features_are_sorted_and_flags_are_not() -> None:
    build = Build.model_validate(_BUILD | {"features": ["b", "a"], "flags": ["-b", "-a"]})
    assert build.features == ("a", "b")
    assert build.flags == ("-b", "-a")


@pytest.mark.parametrize("key", ["toolchain", "profile", "flags", "features"])
def test_a_build_is_explicit(key: str) -> None:
    with pytest.raises(ValidationError):
        Build.model_validate({name: value for name, value in _BUILD.items() if name != key})


@pytest.mark.parametrize(
    ("address", "accepted"),
    [
        ("https://github.com/ai-dynamo/aisimulate", True),
        ("git@github.com:ai-dynamo/aisimulate.git", True),
        ("ssh://git@github.com/ai-dynamo/aisimulate", True),
        ("/some/folder with blanks", True),
        ("https://user:secret@example.invalid/x", False),
        ("https://token@example.invalid/x", False),
        ("ssh://user:secret@example.invalid/x", False),
    ],
)
def test_an_address_holds_no_secret(address: str, accepted: bool) -> None:
    assert _accepts(GitSource, {"git": address, "revision": "main"}) is accepted


def test_an_address_with_a_password_is_not_repeated() -> None:
    with pytest.raises(ValidationError) as caught:
        GitSource.model_validate({"git": "https://user:secret@example.invalid/x", "revision": "main"})
    assert "secret" not in caught.value.errors()[0]["msg"]


def test_documents_survive_json() -> None:
    campaign = Campaign(
        schema_version=1,
        name="mine",
        title="Mine",
        baseline=CrateSource(version="0.12.0"),
        candidate=GitSource(git="/r", revision="main"),
        relationship={"ancestor": True},  # type: ignore[arg-type]
        build=Build(toolchain="path", profile="release", flags=("-g",), features=()),
        rows=("a", RowReference(file="b.yaml")),
    )
    assert Campaign.model_validate_json(campaign.model_dump_json()) == campaign
    assert Campaign.model_validate(campaign.model_dump()) == campaign
