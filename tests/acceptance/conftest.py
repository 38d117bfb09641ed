"""Fixtures of this folder."""

from tests.support.fixtures import mooncake, repository_root

__all__ = ["mooncake", "repository_root"]
