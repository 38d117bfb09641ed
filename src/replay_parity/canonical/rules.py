"""What a canonical record says beyond its form: roots, schema, exclusions, order (rules 13 and 14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from replay_parity.canonical.shown import shown
from replay_parity.errors import CanonicalFormError

SCHEMA_VERSION = "dynamo.offline-replay.v1"
ROOT_KEYS = ("coverage", "metadata", "per_request", "planner", "summary")
# The closed list of what the engine leaves out: wall-clock times and a file name. An exception never widens it.
RESULT_EXCLUSIONS = (
    "/summary/wall_time_ms",
    "/summary/processed_tokens_per_s",
    "/summary/processed_output_tokens_per_s",
    "/planner/html_report_path",
)

_LIMIT = 120


def check_record(document: object, *, where: str) -> dict[str, Any]:
    """The document as a record; CanonicalFormError for the first broken rule, in the order of the checks below."""
    if not isinstance(document, dict):
        refuse("not_an_object", f"is {shown(document, _LIMIT)}, not a record", where)
    _check_roots(document, where)
    _check_metadata(document["metadata"], where)
    for pointer in RESULT_EXCLUSIONS:
        root, field = pointer[1:].split("/")
        if root == "summary" and field in document["summary"]:
            refuse("excluded_field", "holds a field that its exclusion list leaves out", f"{where}, {pointer}")
    _check_requests(document["per_request"], where)
    return document


def refuse(reason: str, message: str, where: str) -> NoReturn:
    """Raise the error of the house."""
    raise CanonicalFormError(reason, message, where=where)


def _check_roots(document: dict[str, Any], where: str) -> None:
    for missing in (key for key in ROOT_KEYS if key not in document):
        refuse("root_keys", f"has no {missing!r} at its root", where)
    for other in (key for key in document if key not in ROOT_KEYS):
        refuse("root_keys", f"has {shown(other, _LIMIT)} at its root, which a record does not have", where)
    for root in ("coverage", "metadata", "summary"):
        if not isinstance(document[root], dict):
            refuse("root_type", f"is {shown(document[root], _LIMIT)}, not an object", f"{where}, /{root}")
    if not isinstance(document["per_request"], list):
        found = shown(document["per_request"], _LIMIT)
        refuse("root_type", f"is {found}, not an array", f"{where}, /per_request")
    if document["planner"] is not None:
        refuse("planner", f"is {shown(document['planner'], _LIMIT)}, not null", f"{where}, /planner")


def _check_metadata(metadata: dict[str, Any], where: str) -> None:
    found = metadata.get("schema_version")
    if found != SCHEMA_VERSION:
        place = f"{where}, /metadata/schema_version"
        refuse("schema_version", f"is {shown(found, _LIMIT)}, not {SCHEMA_VERSION!r}", place)
    exclusions = metadata.get("result_exclusions")
    if exclusions != list(RESULT_EXCLUSIONS):
        place = f"{where}, /metadata/result_exclusions"
        refuse("exclusions", f"is {shown(exclusions, 2 * _LIMIT)}, not exactly {shown(RESULT_EXCLUSIONS, 200)}", place)


def _check_requests(requests: list[Any], where: str) -> None:
    seen: set[str] = set()
    previous = ""
    for index, uuid in enumerate(_uuids(requests, where)):
        place = f"{where}, /per_request/{index}/uuid"
        if uuid in seen:
            refuse("duplicate_uuid", f"is {shown(uuid, _LIMIT)}, which an earlier request has too", place)
        if uuid < previous:
            refuse("request_order", f"is {shown(uuid, _LIMIT)}, after {shown(previous, _LIMIT)}", place)
        seen.add(uuid)
        previous = uuid


def _uuids(requests: list[Any], where: str) -> Iterator[str]:
    for index, request in enumerate(requests):
        place = f"{where}, /per_request/{index}"
        if not isinstance(request, dict):
            refuse("request_type", f"is {shown(request, _LIMIT)}, not an object", place)
        uuid = request.get("uuid")
        if not isinstance(uuid, str) or not uuid:
            refuse("request_uuid", f"has the uuid {shown(uuid, _LIMIT)}, which is not a name", place)
        yield uuid
