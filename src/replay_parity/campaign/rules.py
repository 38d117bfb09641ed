"""What a row may ask of the engine (DESIGN.md, rule 10), refused by name before anything is built.

The runner holds the same rules; here they name the line of the file. Keys of the engine's configuration, seen in
0.1.0-dev.2 to 0.13.0: `timing_model.type: external`, `native_host_offload` and `g3_offload`; none names KVBM yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replay_parity.campaign.corpus_file import TraceFormat
from replay_parity.campaign.document import Finding, Place
from replay_parity.campaign.row import AgenticWorkload, ClosedLoopWorkload, Workload

# Written into the record's metadata by the runner or by the engine.
_RESERVED = frozenset(
    {
        "campaign",
        "composition",
        "engine",
        "planner",
        "result_exclusions",
        "row_name",
        "schema_version",
        "topology",
        "workload",
    }
)
_ADAPTERS = {"placement": "round_robin", "scaling": "none"}


def check_spec(spec: dict[str, Any]) -> Iterator[Finding]:
    """Refusals in a specification, whatever the workload."""
    yield from _adapters(spec.get("adapters"))
    yield from _outside(spec.get("engine"), ("spec", "engine"))
    for key, value in spec.items():
        if _is_kvbm(key) and value is not None:
            yield Finding(("spec", key), "KVBM is refused: only the engine is compared")
    if spec.get("max_sim_time_ms") is not None:
        yield Finding(("spec", "max_sim_time_ms"), "is refused: it would leave requests in flight")
    if spec.get("requests") not in (None, [], {}):
        yield Finding(("spec", "requests"), "must be empty: the requests come from the corpus")


def check_metadata(metadata: dict[str, Any]) -> Iterator[Finding]:
    """Refusals in the free part of the record's metadata."""
    for key in metadata:
        if key in _RESERVED:
            yield Finding(("metadata", key), "is refused: the runner writes this key itself; choose another name")


def check_workload(spec: dict[str, Any], workload: Workload) -> Iterator[Finding]:
    """`max_in_flight` is ignored by the engine unless the loop is closed, so one without the other is a mistake."""
    cap = spec.get("max_in_flight")
    place: Place = ("spec", "max_in_flight")
    if isinstance(workload, ClosedLoopWorkload):
        if cap is None:
            yield Finding(
                ("spec",), f"the key 'max_in_flight' is missing: workload closed_loop wants {workload.max_in_flight}"
            )
        elif type(cap) is not int or cap != workload.max_in_flight:
            yield Finding(place, f"must be {workload.max_in_flight}, as /workload/max_in_flight says; it is {cap!r}")
    elif cap is not None:
        yield Finding(
            place, f"is refused: the engine ignores it with workload {workload.kind}; only closed_loop has a cap"
        )


def check_format(trace: TraceFormat, workload: Workload) -> Iterator[Finding]:
    """An agentic workload and an agentic trace need each other."""
    agentic = isinstance(workload, AgenticWorkload)
    if agentic != (trace == "agentic_mooncake"):
        wanted = "agentic_mooncake" if agentic else "mooncake"
        yield Finding(("workload", "kind"), f"workload {workload.kind} needs a corpus of format {wanted}, not {trace}")


def _adapters(adapters: Any) -> Iterator[Finding]:
    if adapters is None:
        return
    place: Place = ("spec", "adapters")
    if not isinstance(adapters, dict):
        yield Finding(place, "must be a mapping of keys to values")
        return
    for name, adapter in adapters.items():
        only = _ADAPTERS.get(name)
        if only is None:
            yield Finding(
                (*place, name), "is refused: only the engine is compared, with adapters 'placement' and 'scaling'"
            )
            continue
        provider = adapter.get("provider") if isinstance(adapter, dict) else None
        if provider != only:
            yield Finding((*place, name), f"must have the provider '{only}': only the engine is compared")
        elif adapter.get("config") not in (None, [], {}):
            yield Finding((*place, name, "config"), "must be empty: the engine ignores it")


def _outside(value: Any, place: Place) -> Iterator[Finding]:
    """What the engine would take from another program, or from memory beyond the GPU, at any depth."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _outside(item, (*place, index))
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        here = (*place, key)
        if inner is None:
            continue
        if key.endswith("offload"):
            yield Finding(here, "host offload is refused: only the engine is compared")
        elif _is_kvbm(key):
            yield Finding(here, "KVBM is refused: only the engine is compared")
        elif key == "timing_model" and isinstance(inner, dict) and inner.get("type") == "external":
            yield Finding(here, "external timing is refused: only the engine is compared")
        else:
            yield from _outside(inner, here)


def _is_kvbm(key: str) -> bool:
    return "kvbm" in key.lower()
