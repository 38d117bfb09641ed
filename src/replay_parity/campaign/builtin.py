"""The campaigns, rows and corpora that come with the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from replay_parity.errors import InfrastructureError


def builtin_configs() -> Path:
    """The folder that holds `campaigns/`, `rows/` and `corpora/`.

    Package data of an installation (`replay_parity/builtin/configs`), else `configs/` of the source tree. Raises
    InfrastructureError when there is neither.
    """
    package = Path(str(resources.files("replay_parity")))
    for folder in (package / "builtin" / "configs", package.parents[1] / "configs"):
        if (folder / "campaigns").is_dir():
            return folder
    raise InfrastructureError(
        "the built-in campaigns, rows and corpora are missing", where=str(package), hint="install replay-parity again"
    )
