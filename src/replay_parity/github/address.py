"""Where GitHub's API is and which addresses belong to it: a token is sent nowhere else."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlencode, urljoin, urlsplit

from replay_parity.errors import BadInputError, InfrastructureError

_REPOSITORY = re.compile(r"(?!\.{1,2}/)[A-Za-z0-9._-]+/(?!\.{1,2}\Z)[A-Za-z0-9._-]+")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class ApiAddress:
    """`root` without a slash at its end (`https://api.github.com`, `https://HOST/api/v3`) and `owner/name`."""

    root: str
    repository: str

    @classmethod
    def checked(cls, api_url: str, repository: str) -> ApiAddress:
        """BadInputError when the address is not https (plain http only to this machine) or a name is no repository."""
        if not _REPOSITORY.fullmatch(repository):
            raise BadInputError("the repository must be named owner/name", hint="see GITHUB_REPOSITORY")
        parts = _split(api_url)
        if parts is None or not parts.hostname:
            raise BadInputError("the address of GitHub's API is no address", hint="see GITHUB_API_URL")
        if parts.scheme != "https" and not (parts.scheme == "http" and _is_this_machine(parts.hostname)):
            raise BadInputError(
                "the address of GitHub's API must begin with https://: a token would travel in the open",
                where=parts.hostname,
            )
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise BadInputError(
                "the address of GitHub's API must hold no user, no query and no fragment", where=parts.hostname
            )
        return cls(root=api_url.rstrip("/"), repository=repository)

    def of(self, path: str, query: dict[str, str]) -> str:
        """The address of a path below the repository; `path` is percent-encoded already."""
        return f"{self.root}/repos/{self.repository}{path}" + (f"?{urlencode(query)}" if query else "")

    def within(self, current: str, target: str) -> str:
        """The address that a redirect or a `Link` header names; InfrastructureError when it leaves the API."""
        address = urljoin(current, target)
        ours, theirs = urlsplit(self.root), _split(address)
        if theirs is None or _origin(theirs) != _origin(ours) or not theirs.path.startswith(f"{ours.path}/"):
            host = theirs.hostname if theirs is not None else None
            raise InfrastructureError(
                f"GitHub's API points to another host, {host or 'without a name'}; the token is not sent there",
                where=f"{ours.hostname}",
                hint="was the repository renamed or moved?",
            )
        return address

    def shown(self, address: str) -> str:
        """An address of this API as a message names it: its path only."""
        return urlsplit(address).path


def _split(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None, bool]:
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme), "@" in parts.netloc


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
