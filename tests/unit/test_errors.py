"""Exit codes: "parity broke", "your file is wrong" and "our tool failed" never look alike."""

from __future__ import annotations

import inspect

import pytest

from replay_parity import errors
from replay_parity.errors import (
    BadInputError,
    BuildError,
    CanonicalFormError,
    InfrastructureError,
    ManyErrors,
    ProcessError,
    ReplayParityError,
)

# DESIGN.md, outcomes and exit codes.
EXIT_CODES = {
    "ReplayParityError": 3,
    "BadInputError": 2,
    "ConfigurationError": 2,
    "ManyErrors": 2,
    "RevisionError": 2,
    "CorpusError": 2,
    "CanonicalFormError": 2,
    "InfrastructureError": 3,
    "ProcessError": 3,
    "BuildError": 1,
}
CLASSES = {
    name: found
    for name, found in inspect.getmembers(errors, inspect.isclass)
    if issubclass(found, ReplayParityError) and found.__module__ == errors.__name__
}


def test_every_class_has_its_documented_code() -> None:
    assert {name: found.exit_code for name, found in CLASSES.items()} == EXIT_CODES


def test_codes_and_labels_are_unique() -> None:
    codes = {name: value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert codes == {
        "EXIT_OK": 0,
        "EXIT_DIFFERENT": 1,
        "EXIT_BAD_INPUT": 2,
        "EXIT_INFRASTRUCTURE": 3,
        "EXIT_INTERRUPTED": 130,
    }
    labels = {name: found.label for name, found in CLASSES.items() if name != "ManyErrors"}
    assert len(set(labels.values())) == len(labels)


def test_one_line_holds_place_sentence_and_hint() -> None:
    assert str(BadInputError("is wrong")) == "is wrong"
    assert str(BadInputError("is wrong", where="file:3")) == "file:3: is wrong"
    assert str(InfrastructureError("failed", where="x", hint="run again")) == "x: failed (run again)"
    assert str(CanonicalFormError("duplicate-key", "has a key twice", where="r")) == "r: has a key twice"


def test_many_errors_are_told_one_a_line() -> None:
    many = ManyErrors([BadInputError("a", where="1"), BadInputError("b", hint="c")])
    assert str(many).splitlines() == ["1: a", "b (c)"]
    assert many.message == "2 problems found in the input files"


def test_errors_carry_what_explains_them() -> None:
    process = ProcessError("x", argv=["a"], returncode=-9, tail="t", folder="/f")
    assert (process.argv, process.returncode, process.tail, process.folder) == (["a"], -9, "t", "/f")
    build = BuildError("x", kind="revision", side="candidate", log="/l", excerpt="e")
    assert (build.kind, build.side, build.log, build.excerpt) == ("revision", "candidate", "/l", "e")
    with pytest.raises(ReplayParityError):
        raise process
