"""What a benchmark module hands back: ratios measured side by side in one run, never bare times."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ratio:
    """One ratio: `measured` over `against`, both in `unit`; `bound` is the most allowed, None when it is only shown."""

    what: str
    measured: float
    against: float
    ratio: float
    bound: float | None
    unit: str = "s"

    @property
    def met(self) -> bool:
        """Whether the bound holds; what has none cannot miss it."""
        return self.bound is None or self.ratio <= self.bound


def ratio_of(what: str, measured: float, against: float, *, bound: float | None = None, unit: str = "s") -> Ratio:
    """The ratio of two measurements."""
    return Ratio(what, measured, against, measured / against, bound, unit)


class NotMeasured(Exception):  # noqa: N818 (it is no failure of the product)
    """A benchmark lacks what it needs on this machine; the message says what to give it."""
