"""The revision is compiled into the runner and read back before use (rule 5): no editable file can claim a revision."""

from __future__ import annotations

from pathlib import Path

import orjson

from replay_parity.errors import InfrastructureError
from replay_parity.pin.models import ArtifactRecord
from replay_parity.system.files import scratch_folder
from replay_parity.system.process import ProcessSpec, run

_TIMEOUT_SECONDS = 30.0
_OUTPUT_CAP = 1 << 20


def identity_variables(
    *, revision: str, runner_source_sha256: str, features: tuple[str, ...], toolchain: str, profile: str
) -> dict[str, str]:
    """Environment of the compiler from which the runner takes its identity."""
    return {
        "REPLAY_PARITY_REVISION": revision,
        "REPLAY_PARITY_RUNNER_SOURCE_SHA256": runner_source_sha256,
        "REPLAY_PARITY_FEATURES": ",".join(features),
        "REPLAY_PARITY_TOOLCHAIN": toolchain,
        "REPLAY_PARITY_PROFILE": profile,
    }


def check_identity(binary: Path, record: ArtifactRecord, *, scratch: Path) -> None:
    """Ask the runner who it is; InfrastructureError when it is not what the record says."""
    with scratch_folder(scratch, "identity-") as folder:
        completed = run(
            ProcessSpec(
                argv=[str(binary), "identity"],
                cwd=folder,
                env={"LC_ALL": "C"},
                stdout=folder / "out",
                stderr=folder / "err",
                timeout=_TIMEOUT_SECONDS,
                output_cap=_OUTPUT_CAP,
            )
        )
        completed.require_success("ask the runner for its identity")
        try:
            found = orjson.loads(completed.stdout.read_bytes())
        except orjson.JSONDecodeError as error:
            raise InfrastructureError(f"the runner's identity is not JSON: {error}", where=str(binary)) from None
    expected = expected_identity(record)
    for name, value in expected.items():
        if not isinstance(found, dict) or found.get(name) != value:
            shown = found.get(name) if isinstance(found, dict) else found
            raise InfrastructureError(
                f"the runner says {name} = {shown!r}, it was built with {value!r}", where=str(binary)
            )


def expected_identity(record: ArtifactRecord) -> dict[str, object]:
    """What a runner of this record must say about itself."""
    return {
        "revision": record.revision.id,
        "runner_source_sha256": record.runner_source_sha256,
        "features": list(record.features),
        "toolchain": record.toolchain.rustc,
        "profile": record.profile,
        "determinism": "random" if record.negative_control == "determinism-off" else "canonical_v1",
    }
