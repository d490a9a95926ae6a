"""JSON Schema of manifests and pins, for editors: the models' shape and the key rules, as far as a schema can say them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import combinations
from typing import Any

from afd_patchkit import model
from afd_patchkit.manifest.build import fields_of
from afd_patchkit.manifest.rules import RULES, Alternative, Rule

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MANIFEST_FILE = "manifest.schema.json"
PINS_FILE = "pins.schema.json"

_NAME = r"[^\W\d]\w*"
_DOTTED = rf"{_NAME}(\.{_NAME})*"
_PATTERNS = {
    ("Entry", "name"): rf"^{_NAME}$",
    ("ClassGroup", "name"): rf"^{_NAME}$",
    ("Entry", "part"): r"^(?!.*(^|/)\.{0,2}/)[^\\]+\.py$",
    ("Manifest", "module"): r"^([A-Za-z_][A-Za-z0-9_]*/)*[A-Za-z_][A-Za-z0-9_]*\.py$",
    ("Delta", "name"): r"^[^\s#]([^\n\t#]*[^\s#])?$",
    ("Pin", "distribution"): r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
    ("Pin", "version"): r"^[0-9]",
}
_HELD = {
    "symbol": "package.module:Qual.name",
    "name": "expression; quote it unless it is a dotted name",
    "imports": "absolute import statements",
    "pattern": "pattern of statements, as block scalar (|) or quoted; `...` matches anything",
    "expression pattern": "pattern of an expression, as block scalar (|) or quoted; `...` matches anything",
    "any pattern": "pattern, as block scalar (|) or quoted; `...` matches anything",
    "statements": "Python statements, as block scalar (|) or quoted",
    "with": "Python, as block scalar (|) or quoted; `__upstream__` stands for what is replaced",
    "expression": "Python expression, as block scalar (|) or quoted",
    "targets": "assignment targets, as block scalar (|) or quoted",
    "clause": "whole clause, head and suite, as block scalar (|)",
    "head": 'head of a clause, quoted: "elif c", "else", "except E", "finally", "case p"',
    "parameter": 'a parameter as in a `def`, quoted: "rank: int = 0"',
    "member": "members of a class body, as block scalar (|)",
    "version": "quoted",
}


def manifest_schema() -> Schema:
    """The JSON Schema (draft 2020-12) of a manifest."""
    schema = _schema_of(model.Manifest)
    backport = {"properties": {"kind": {"const": "backport"}}, "required": ["kind"]}
    probed = {"if": backport, "then": {"required": ["remove_when"]}}
    members = {"properties": {"class": {"properties": {"members": {"items": probed}}}}}
    schema["anyOf"] = [
        {"required": ["remove_when"], "properties": {"remove_when": {"minItems": 1}}},
        {"properties": {"entries": {"items": {"allOf": [probed, members]}}}},
    ]
    return schema


def pins_schema() -> Schema:
    """The JSON Schema (draft 2020-12) of `pins.yaml`."""
    schema = _schema_of(model.Pins)
    schema["properties"]["pins"]["propertyNames"] = {"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$"}
    return schema


def schema_text(schema: Schema) -> str:
    """The schema as the text of a file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _schema_of(cls: type[model.Model]) -> Schema:
    raw = cls.model_json_schema(by_alias=True)
    definitions: dict[str, Schema] = raw.pop("$defs", {})
    definitions.pop("Position", None)
    for name, definition in (*definitions.items(), (cls.__name__, raw)):
        _finish(getattr(model, name), definition)
    return {
        "$schema": DIALECT,
        "$comment": "Written by `afd-patchkit schema`; do not edit.",
        **raw,
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }


def _finish(cls: type[model.Model], schema: Schema) -> None:
    """Make pydantic's schema of one model say what the loader says."""
    schema["properties"].pop("where")
    for key, value in list(schema["properties"].items()):
        cleaned = _cleaned(value)
        pattern = _PATTERNS.get((cls.__name__, key))
        if pattern:
            cleaned["pattern"] = pattern
        schema["properties"][key] = cleaned
    rule = RULES.get(cls)
    if rule is None:
        return
    every = frozenset(fields_of(cls))
    if rule.selector:
        schema["allOf"] = list(_by_selector(rule, every))
    else:
        schema["oneOf"] = [
            {"title": key, **_constraint(rule, key, alternative, every)}
            for key, alternative in rule.alternatives.items()
        ]


def _cleaned(schema: Schema) -> Schema:
    """Without null (a key without value is an error), with what the text holds, and no blank texts."""
    result = {key: value for key, value in schema.items() if key not in ("anyOf", "holds", "default")}
    if schema.get("default") not in (None, [], {}):
        result["default"] = schema["default"]
    held = schema.get("holds")
    for choice in schema.get("anyOf", ()):
        held = held or choice.get("holds")
    choices = [_cleaned(choice) for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    if len(choices) == 1:
        result = {**choices[0], **result}
    elif choices:
        result["anyOf"] = choices
    if "items" in result:
        result["items"] = _cleaned(result["items"])
    if isinstance(result.get("additionalProperties"), dict):
        result["additionalProperties"] = _cleaned(result["additionalProperties"])
    if result.get("type") == "string" and not result.keys() & {"enum", "const", "pattern"}:
        result["pattern"] = rf"^{_DOTTED}:{_DOTTED}\n*$" if held == "symbol" else r"\S"
    if held in _HELD and held != "symbol":
        what = _HELD[held]
        result["description"] = f"{result['description']} ({what})" if "description" in result else what
    return result


def _by_selector(rule: Rule, every: frozenset[str]) -> Iterable[Schema]:
    for value, alternative in rule.alternatives.items():
        chosen: Schema = {"properties": {rule.selector: {"const": value}}}
        if value != rule.default:
            chosen["required"] = [rule.selector]
        yield {"if": chosen, "then": _constraint(rule, None, alternative, every)}


def _constraint(rule: Rule, operation: str | None, alternative: Alternative, every: frozenset[str]) -> Schema:
    """What one alternative demands of its neighbours."""
    result: Schema = {}
    own = [operation] if operation else []
    if own or alternative.needs:
        result["required"] = [*own, *alternative.needs]
    allowed = alternative.companions | rule.always | {*own, rule.selector}
    properties: Schema = dict.fromkeys(sorted(every - allowed), False)
    if "with" in allowed and operation != "replace":  # only statements can be taken from another pin
        properties["with"] = {"type": "string"}
    if properties:
        result["properties"] = properties
    conditions: list[Schema] = []
    if alternative.one_of:
        conditions.append({"oneOf": [{"required": [key]} for key in alternative.one_of]})
    if alternative.some_of:
        conditions.append({"anyOf": [{"required": [key]} for key in alternative.some_of]})
    clashes = (*alternative.clashes, *combinations(alternative.at_most, 2))
    conditions += [{"not": {"required": list(pair)}} for pair in clashes]
    if alternative.requires:
        conditions.append({"dependentRequired": {key: [other] for key, other in alternative.requires}})
    if alternative.with_if and operation:
        conditions.append(
            {
                "if": {"properties": {operation: {"required": [alternative.with_if]}}},
                "then": {"required": ["with"]},
                "else": {"properties": {"with": False}},
            }
        )
    if conditions:
        result["allOf"] = conditions
    return result
