"""GitHub's own description of its API, as a judge of requests and answers."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote

import orjson
from jsonschema import Draft202012Validator

from tests.support.node_tools import node_tools

_REFERENCE = "#/components/"


@dataclass(frozen=True)
class Operation:
    """One operation of the description, and the values that a path has for it."""

    template: str
    method: str
    values: dict[str, str]
    document: dict[str, Any]


class Description:
    """`api.github.com.json` of the package @octokit/openapi."""

    def __init__(self) -> None:
        path = node_tools() / "@octokit" / "openapi" / "generated" / "api.github.com.json"
        self._document: dict[str, Any] = orjson.loads(path.read_bytes())

    @cached_property
    def _templates(self) -> list[tuple[re.Pattern[str], str]]:
        found = []
        for template in self._document["paths"]:
            parts = re.split(r"\{(\w+)\}", template)
            text = "".join(f"(?P<{part}>[^/]+)" if odd % 2 else re.escape(part) for odd, part in enumerate(parts))
            found.append((re.compile(text), template))
        # Words before variables: `/check-runs/rerequest` is not `/check-runs/{id}`.
        return sorted(found, key=lambda pair: pair[1].count("{"))

    def operation(self, method: str, raw_path: str) -> Operation | None:
        """The operation of a percent-encoded path."""
        for pattern, template in self._templates:
            match = pattern.fullmatch(raw_path)
            if match and method.lower() in self._document["paths"][template]:
                values = {name: unquote(value) for name, value in match.groupdict().items()}
                return Operation(template, method.lower(), values, self._document["paths"][template][method.lower()])
        return None

    def example(self, name: str) -> Any:
        """A copy of one of GitHub's own example answers."""
        return copy.deepcopy(self._document["components"]["examples"][name]["value"])

    def request_problems(self, method: str, raw_path: str, query: str, body: bytes) -> list[str]:
        """Everything about a request that GitHub does not describe."""
        operation = self.operation(method, raw_path)
        if operation is None:
            return [f"{method} {raw_path} is no operation of GitHub's API"]
        parameters = [self._resolved(parameter) for parameter in operation.document.get("parameters", [])]
        problems = [
            *_of_path(self, operation, [item for item in parameters if item["in"] == "path"]),
            *_of_query(self, query, [item for item in parameters if item["in"] == "query"]),
        ]
        described = operation.document.get("requestBody")
        if described is None:
            return [*problems, *(["a body where none is described"] if body else [])]
        schema = described["content"]["application/json"]["schema"]
        return [*problems, *self.schema_problems(schema, orjson.loads(body or b"null"), strict=True)]

    def answer_problems(self, method: str, raw_path: str, status: int, body: Any) -> list[str]:
        """Everything about an answer that GitHub does not describe; errors without description are basic errors."""
        operation = self.operation(method, raw_path)
        described = operation.document["responses"].get(str(status)) if operation else None
        if described is not None:
            schema = self._resolved(described)["content"]["application/json"]["schema"]
        elif status == 422:
            schema = {"$ref": "#/components/schemas/validation-error"}
        elif status >= 400:
            schema = {"$ref": "#/components/schemas/basic-error"}
        else:
            return [f"{status} is no described answer of {method} {raw_path}"]
        return self.schema_problems(schema, body, strict=False)

    def schema_problems(self, schema: Any, value: Any, *, strict: bool) -> list[str]:
        """Problems of a value; `strict` refuses keys that the schema does not name."""
        validator = Draft202012Validator(self._converted(schema, strict))
        return [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(value)]

    def _resolved(self, node: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in node:
            target: Any = self._document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def _converted(self, node: Any, strict: bool, depth: int = 0) -> Any:
        """OpenAPI 3.0 to JSON Schema: references followed, `nullable` as a second type, examples left out."""
        if isinstance(node, list):
            return [self._converted(item, strict, depth) for item in node]
        if not isinstance(node, dict):
            return node
        if isinstance(node.get("$ref"), str) and node["$ref"].startswith(_REFERENCE):
            return self._converted(self._resolved(node), strict, depth + 1)
        assert depth < 20, "a schema that holds itself"
        plain = {key: value for key, value in node.items() if key not in {"nullable", "example", "examples", "default"}}
        # Below `properties` the keys are names, not words of the schema language.
        converted = {
            key: {name: self._converted(item, strict, depth) for name, item in value.items()}
            if key == "properties"
            else self._converted(value, strict, depth)
            for key, value in plain.items()
        }
        if strict and "properties" in converted:
            converted.setdefault("additionalProperties", False)
        return {"anyOf": [{"type": "null"}, converted]} if node.get("nullable") else converted


def _of_path(description: Description, operation: Operation, parameters: list[dict[str, Any]]) -> Iterator[str]:
    for parameter in parameters:
        value = operation.values.get(parameter["name"], "")
        yield from description.schema_problems(parameter["schema"], _read(parameter, value), strict=False)


def _of_query(description: Description, query: str, parameters: list[dict[str, Any]]) -> Iterator[str]:
    known = {parameter["name"]: parameter for parameter in parameters}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            yield f"the query holds {name}, which is not described"
            continue
        yield from description.schema_problems(known[name]["schema"], _read(known[name], value), strict=False)


def _read(parameter: dict[str, Any], value: str) -> Any:
    return int(value) if parameter["schema"].get("type") == "integer" and value.isdigit() else value


@cache
def github_description() -> Description:
    """Read once in a session: it is 13 MB."""
    return Description()
