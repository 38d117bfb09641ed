"""What is read from a built runner: size, `.text` size, a digest that does not see the compiled-in revision."""

from __future__ import annotations

from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from replay_parity.system.files import sha256_bytes


def text_size(path: Path) -> int | None:
    """Size of the `.text` section in bytes; None for a file that is not ELF (macOS)."""
    with path.open("rb") as file:
        try:
            section = ELFFile(file).get_section_by_name(".text")
        except ELFError:
            return None
        return int(section["sh_size"]) if section is not None else None


def neutral_sha256(path: Path, *, revision: str) -> str:
    """SHA-256 with every copy of `revision` and the linker's build id blanked.

    Two artifacts of equal neutral digest hold the same code although their trees differ (rule 8).
    """
    data = bytearray(path.read_bytes())
    with path.open("rb") as file:
        try:
            section = ELFFile(file).get_section_by_name(".note.gnu.build-id")
            if section is not None:
                start, size = int(section["sh_offset"]), int(section["sh_size"])
                data[start : start + size] = bytes(size)
        except ELFError:
            pass
    needle = revision.encode()
    return sha256_bytes(bytes(data).replace(needle, bytes(len(needle))))
