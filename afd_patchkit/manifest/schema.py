"""JSON Schema of manifests and pins, for editors: the models' shape and the key rules, as far as a schema can say them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import combinations
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from afd_patchkit import model
from afd_patchkit.manifest import syntax
from afd_patchkit.manifest.rules import RULES, Rule
from afd_patchkit.manifest.snippets import snippets_of
from afd_patchkit.manifest.texts import HELD
from afd_patchkit.model import What
from afd_patchkit.operations import OPERATIONS, Alternative

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MANIFEST_FILE = "manifest.schema.json"
PINS_FILE = "pins.schema.json"
COMMENT = "Written by `afd-patchkit schema`; do not edit."
"""How a copy of a schema is known."""


class _Said(GenerateJsonSchema):
    """The schema as a person reads it: a key is left out or has a value, and a text says what it holds."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> Schema:
        """Null is no value: a key without one is an error."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Schema:
        """A default is told when it says something."""
        made = super().default_schema(schema)
        if made.get("default") in (None, [], {}):
            made.pop("default", None)
        return made


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
    told = {"properties": {"class": {"properties": {"members": {"items": {"required": ["reason"]}}}}}}
    reasons = {"anyOf": [{"required": ["reason"]}, {"required": ["class"], **told}]}
    schema["allOf"] = [{"anyOf": [{"required": ["reason"]}, {"properties": {"entries": {"items": reasons}}}]}]
    return schema


def pins_schema() -> Schema:
    """The JSON Schema (draft 2020-12) of `pins.yaml`."""
    return _schema_of(model.Pins)


def schema_text(schema: Schema) -> str:
    """The schema as the text of a file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _schema_of(cls: type[model.Model]) -> Schema:
    raw = _spelled(cls.model_json_schema(by_alias=True, schema_generator=_Said))
    definitions: dict[str, Schema] = raw.pop("$defs", {})
    for name, definition in (*definitions.items(), (cls.__name__, raw)):
        _ruled(getattr(model, name), definition)
        if found := snippets_of(name):
            definition["defaultSnippets"] = found
    return {
        "$schema": DIALECT,
        "$comment": COMMENT,
        **raw,
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }


def _spelled(schema: Any) -> Any:
    """With what each text holds, where `model.Holds` has left its mark."""
    if isinstance(schema, list):
        return [_spelled(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _spelled(value) for key, value in schema.items() if key != "holds"}
    what: What | None = schema.get("holds") or next(
        (c.get("holds") for c in schema.get("anyOf", ()) if c.get("holds") in syntax.CODE), None
    )
    if what is not None:
        held = HELD[what]
        if "holds" in schema:
            made.setdefault("pattern", held.pattern)
        if held.hint and ("description" in made or "holds" in schema):
            made["description"] = f"{made['description']} ({held.hint})" if "description" in made else held.hint
    return made


def _ruled(cls: type[model.Model], schema: Schema) -> None:
    """Add the key rules of one model."""
    rule = RULES.get(cls)
    if rule is None:
        return
    every = frozenset(cls.key_names())
    if rule.selector:
        schema["allOf"] = list(_by_selector(rule, every))
    else:
        schema["oneOf"] = [
            {"title": key, **_constraint(rule, key, alternative, every)}
            for key, alternative in rule.alternatives.items()
        ]


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
        result["required"] = [*own, *(key for key in alternative.needs if key not in alternative.instead)]
    allowed = alternative.companions | rule.always | {*own, rule.selector}
    properties: Schema = dict.fromkeys(sorted(every - allowed), False)
    if "with" in allowed and not OPERATIONS[operation or ""].takes:  # only statements can be taken from another pin
        properties["with"] = {"type": "string"}
    if properties:
        result["properties"] = properties
    conditions: list[Schema] = []
    conditions += [
        {"anyOf": [{"required": [name]} for name in (key, *others)]} for key, others in alternative.instead.items()
    ]
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
