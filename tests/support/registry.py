"""A registry of our own: cargo's sparse protocol as files, served on this machine, in place of the usual one."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Mapping
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the overridden method)
        pass

    def send_header(self, keyword: str, value: str) -> None:
        # Its seconds are too coarse: what is published within one would not be seen.
        if keyword != "Last-Modified":
            super().send_header(keyword, value)


class Registry:
    """Packages below `folder`; `configuration` is what a user writes into `CARGO_HOME/config.toml` for a mirror."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "packages").mkdir(parents=True)
        handler = functools.partial(_Quiet, directory=str(folder))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        (folder / "config.json").write_text(json.dumps({"dl": f"{self._url}/packages/{{crate}}-{{version}}.crate"}))

    def close(self) -> None:
        """Nobody listens there any more."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def configuration(self) -> str:
        return (
            '[source.crates-io]\nreplace-with = "mirror"\n'
            f'[source.mirror]\nregistry = "sparse+{self._url}/"\n[net]\nretry = 0\n'
        )

    def publish(
        self,
        name: str,
        version: str,
        files: Mapping[str, str],
        *,
        needs: Mapping[str, str] | None = None,
        yanked: bool = False,
    ) -> str:
        """Publish a package; `needs` maps names to requirements. Returns its checksum."""
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz") as tar:
            for path, text in files.items():
                member = tarfile.TarInfo(f"{name}-{version}/{path}")
                member.size = len(text.encode())
                tar.addfile(member, io.BytesIO(text.encode()))
        (self._folder / "packages" / f"{name}-{version}.crate").write_bytes(data.getvalue())
        checksum = hashlib.sha256(data.getvalue()).hexdigest()
        entry = {
            "name": name,
            "vers": version,
            "deps": [_dependency(other, requirement) for other, requirement in (needs or {}).items()],
            "cksum": checksum,
            "features": {},
            "yanked": yanked,
        }
        index = self._folder.joinpath(*_index_path(name))
        index.parent.mkdir(parents=True, exist_ok=True)
        with index.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        return checksum


def library(name: str, version: str, source: str, *, needs: Mapping[str, str] | None = None) -> dict[str, str]:
    """Files of a package that is a library."""
    dependencies = "".join(f'{other} = "{requirement}"\n' for other, requirement in (needs or {}).items())
    manifest = f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2021"\n\n[dependencies]\n{dependencies}'
    return {"Cargo.toml": manifest, "src/lib.rs": source}


def _dependency(name: str, requirement: str) -> dict[str, Any]:
    return {
        "name": name,
        "req": requirement,
        "features": [],
        "optional": False,
        "default_features": True,
        "target": None,
        "kind": "normal",
    }


def _index_path(name: str) -> tuple[str, ...]:
    short = {1: ("1",), 2: ("2",), 3: ("3", name[0])}
    return (*short.get(len(name), (name[:2], name[2:4])), name)
