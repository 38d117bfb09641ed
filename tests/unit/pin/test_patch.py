"""The determinism patch as a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from replay_parity.campaign.models import Patch
from replay_parity.errors import BadInputError
from replay_parity.pin.patch import apply_patch, load_patch
from replay_parity.system.files import sha256_bytes

DIFF = b"""\
diff --git a/crates/core/x b/crates/core/x
--- a/crates/core/x
+++ b/crates/core/x
@@ -1 +1 @@
-one
+two
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "slot" / "checkout"
    (folder / "crates" / "core").mkdir(parents=True)
    (folder / "crates" / "core" / "x").write_text("one\n")
    # A repository above must not make git take the paths for its own.
    (tmp_path / "slot" / ".git").mkdir()
    return folder


def apply(checkout: Path, data: bytes, environment: Mapping[str, str], *, sha256: str | None = None) -> None:
    file = checkout.parent / "the.patch"
    file.write_bytes(data)
    apply_patch(
        file,
        checkout,
        sha256=sha256 or sha256_bytes(data),
        side="candidate",
        cache=checkout.parents[1] / "cache",
        environment=environment,
    )


def test_a_patch_is_applied(checkout: Path, environment: Mapping[str, str]) -> None:
    apply(checkout, DIFF, environment)
    assert (checkout / "crates" / "core" / "x").read_text() == "two\n"


@pytest.mark.parametrize(
    "data",
    [
        DIFF.replace(b"-one", b"-other"),
        DIFF.replace(b"core/x", b"core/absent"),
        DIFF.replace(b"a/crates/core/x", b"a/../../x").replace(b"b/crates/core/x", b"b/../../x"),
        DIFF + DIFF.replace(b"-one", b"-other").replace(b"core/x", b"core/y"),
        b"",
        b"not a patch",
    ],
)
def test_a_patch_that_does_not_fit_changes_nothing(checkout: Path, environment: Mapping[str, str], data: bytes) -> None:
    with pytest.raises(BadInputError, match="the patch does not apply to the candidate: ") as caught:
        apply(checkout, data, environment)
    assert len(str(caught.value).splitlines()) == 1
    assert (checkout / "crates" / "core" / "x").read_text() == "one\n"


def test_only_the_patch_of_the_checksum_is_applied(checkout: Path, environment: Mapping[str, str]) -> None:
    with pytest.raises(BadInputError, match=f"the patch has SHA-256 {sha256_bytes(DIFF)}, the campaign demands"):
        apply(checkout, DIFF, environment, sha256="0" * 64)
    assert (checkout / "crates" / "core" / "x").read_text() == "one\n"


def test_a_patch_is_loaded_from_the_campaigns_folder(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(DIFF)
    patch = Patch(file="p", sha256=sha256_bytes(DIFF))
    assert load_patch(patch, base=tmp_path) == DIFF
    with pytest.raises(BadInputError, match="the campaign demands"):
        load_patch(patch.model_copy(update={"sha256": "0" * 64}), base=tmp_path)
    with pytest.raises(BadInputError, match="there is no such file"):
        load_patch(patch.model_copy(update={"file": "absent"}), base=tmp_path)
