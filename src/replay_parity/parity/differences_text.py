"""The focused difference on one terminal screen: plain ASCII lines, whatever the record's keys and values hold."""

from __future__ import annotations

from collections.abc import Sequence

from replay_parity.canonical.shown import ELLIPSIS
from replay_parity.parity.differences_model import Differences, PatternGroup, Section
from replay_parity.parity.sections import SectionName

_TITLES: dict[SectionName, str] = {
    "results": "results",
    "configuration": "configuration (/metadata/engine: never parity)",
    "metadata": "other metadata (should be equal)",
}
_HEAD = f"{'count':>9} {'kind':<9} {'max change':>10} {'relative':>9}  pattern, first example"
# Title and column heads, then per section its title and the line that says what is not shown.
_FIXED_LINES = 2
_LINES_PER_SECTION = 2
# A value is cut to this, a path is never cut below that.
_VALUE_WIDTH = 30
_UUID_WIDTH = 36
_PATH_WIDTH = 20
_WHOLE_REQUEST = "/per_request/*"


def summary_lines(
    differences: Differences, *, width: int = 80, height: int = 24, left: str = "baseline", right: str = "candidate"
) -> list[str]:
    """At most `height` lines of at most `width` characters (at least 40 by 8): totals, and the groups that fit.

    Results come first and get what the other sections do not need; each section that differs shows a group at least
    as long as there is room.
    """
    if differences.count == 0:
        return [_fitted(f"no differences between {left} and {right}", width)]
    sections = [(name, section) for name, section in _named(differences) if section.count]
    groups = [[_group(group, width) for group in section.groups] for _, section in sections]
    lines = [_title(differences, left, right), _HEAD]
    for (name, section), texts, count in zip(sections, groups, _shares(groups, height), strict=True):
        lines.append(f"{_TITLES[name]}: {_counts(section)}")
        lines += [line for text in texts[:count] for line in text]
        lines += _hidden(section, count)
    return [_fitted(line, width) for line in lines]


def _named(differences: Differences) -> list[tuple[SectionName, Section]]:
    sections = differences.sections
    return [
        ("results", sections.results),
        ("configuration", sections.configuration),
        ("metadata", sections.metadata),
    ]


def _shares(groups: Sequence[Sequence[list[str]]], height: int) -> list[int]:
    """How many groups each section shows: one each in turn, the results first, while their lines fit."""
    room = height - _FIXED_LINES - _LINES_PER_SECTION * len(groups)
    shares = [0] * len(groups)
    # The later sections are short in practice; what they leave goes to the results.
    open_sections = set(range(len(groups)))
    while open_sections:
        for index in sorted(open_sections):
            texts, share = groups[index], shares[index]
            if share < len(texts) and len(texts[share]) <= room:
                room -= len(texts[share])
                shares[index] += 1
            else:
                open_sections.remove(index)
    return shares


def _title(differences: Differences, left: str, right: str) -> str:
    requests = differences.requests
    parts = [
        f"{count:,} {what}"
        for count, what in (
            (requests.changed, "changed"),
            (requests.removed, f"only in {left}"),
            (requests.added, f"only in {right}"),
        )
        if count
    ]
    inside = f"; requests: {', '.join(parts)} of {max(requests.left, requests.right):,}" if parts else ""
    return f"{_plural(differences.count, 'difference')} {left} -> {right}{inside}"


def _counts(section: Section) -> str:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in section.kinds.items() if count)
    return f"{section.count:,} ({kinds})"


def _hidden(section: Section, shown: int) -> list[str]:
    hidden = len(section.groups) - shown + section.groups_left_out
    if not hidden:
        return []
    fields = section.count - sum(group.count for group in section.groups[:shown])
    return [f"{'':>9} ... and {_plural(fields, 'difference')} in {_plural(hidden, 'more pattern')}"]


def _group(group: PatternGroup, width: int) -> list[str]:
    example = group.example
    head = f"{group.count:>9,} {group.kind:<9} "
    if example.pointer == group.pattern:
        # One place only: its values tell the change.
        return [_line(head, example.pointer, f": {_values(group)}", width)]
    if group.largest_absolute is not None:
        relative = "" if group.largest_relative is None else f"{100 * group.largest_relative:.3g}%"
        head += f"{group.largest_absolute:>10.4g} {relative:>9}  "
    return [_line(head, group.pattern, "", width), _line(f"{'':>10}", example.pointer, f": {_values(group)}", width)]


def _values(group: PatternGroup) -> str:
    example = group.example
    if group.pattern == _WHOLE_REQUEST:
        # The uuid says more than the beginning of a long object.
        return f"request {_fitted(example.request or '', _UUID_WIDTH)}"
    left, right = (_fitted(value or "", _VALUE_WIDTH) for value in (example.left, example.right))
    return left + right if group.kind in {"added", "removed"} else f"{left} -> {right}"


def _line(head: str, path: str, tail: str, width: int) -> str:
    """One line in which the path gives way: its ends tell most."""
    path = _ascii(path)
    room = max(width - len(head) - len(tail), _PATH_WIDTH)
    if len(path) > room:
        first = (room - 3) // 3
        path = f"{path[:first]}...{path[len(path) - (room - 3 - first) :]}"
    return f"{head}{path}{tail}"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _ascii(text: str) -> str:
    # ASCII has one column for each character on every terminal; wide and combining characters do not.
    return text.replace(ELLIPSIS, "...").encode("ascii", "backslashreplace").decode()


def _fitted(line: str, width: int) -> str:
    line = _ascii(line)
    return line if len(line) <= width else line[: width - 3] + "..."
