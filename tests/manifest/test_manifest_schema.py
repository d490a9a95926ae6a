"""The JSON Schema says what the loader says, as far as a schema can; the committed files are in step."""

from __future__ import annotations

import json
import re
import textwrap

import jsonschema
import pytest
import yaml

from afd_patchkit import model
from afd_patchkit.manifest.load import parse_pins
from afd_patchkit.manifest.schema import manifest_schema, pins_schema, schema_text
from afd_patchkit.manifest.snippets import SNIPPETS
from tests.manifest.samples import EXAMPLE, HEAD, delta, entry, marked, problems
from tests.manifest.test_manifest_errors import KEYS, KINDS, NAMES, OPERATIONS, TYPES
from tests.manifest.test_manifest_load import ENTRIES, GOOD, PINS

MANIFEST = jsonschema.Draft202012Validator(manifest_schema())
PINS_VALIDATOR = jsonschema.Draft202012Validator(pins_schema())

# What is no affair of keys and types: how a scalar is written, what stands in code, what one place says of another.
BEYOND = {
    "duplicate top key",
    "duplicate delta key",
    "duplicate in flow mapping",
    "duplicate, quoted once",
    "nth in octal",
    "count is a huge number",
    "reason with a control character",
    "late in YAML 1.1",
    "unquoted key",
    "argument set and dropped",
    "placeholder in insert",
    "placeholder in parameter",
    "unused part",
    "mistyped part",
    "mistyped upstream",
    "nested without wrapping",
    "name like a number",
    "same name twice",
    "same name nested",
    "entry keyword",
    "part name",
    "argument name",
    "depends_on",
    "twice in a class",
    "super outside a class",
    "delegate with insert",
    "owned in a class",
    "module a/class.py",
    "module __init__.py",
    "module a/__init__.py",
}


@pytest.mark.parametrize("schema", [manifest_schema(), pins_schema()], ids=["manifest", "pins"])
def test_is_a_valid_closed_schema(schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    for name, definition in {**schema["$defs"], "top": schema}.items():
        assert definition["additionalProperties"] is False, name
        assert "where" not in definition["properties"], name
        assert definition["title"], name
        assert definition["description"], name
        for key, value in definition["properties"].items():
            assert value.get("description") or "$ref" in value, (name, key)
    assert '"null"' not in schema_text(schema)


@pytest.mark.parametrize("text", [EXAMPLE, *map(delta, GOOD), *map(entry, ENTRIES)])
def test_accepts_what_the_loader_accepts(text):
    assert [e.message for e in MANIFEST.iter_errors(yaml.safe_load(text))] == []


REFUSED = [*KEYS, *TYPES, *OPERATIONS, *NAMES, *KINDS]


@pytest.mark.parametrize(("name", "text"), [row[:2] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refuses_what_the_loader_refuses(name, text):
    document = yaml.safe_load(marked(text)[0])
    assert MANIFEST.is_valid(document) == (name in BEYOND)


def test_no_exception_is_stale():
    assert {row[0] for row in REFUSED} >= BEYOND


@pytest.mark.parametrize(
    ("old", "new", "valid"),
    [
        ("", "", True),
        ('"1.4.0"', "0.10", False),
        ('"1.4.0"', '">=1.4"', False),
        ('"1.4.0"', '"1.4.0", role: donor', True),
        ('"1.4.0"', '"1.4.0", role: donator', False),
        ('"1.4.0"', '"1.4.0", commit: abc', False),
        ("acme:", '"a b":', False),
        (', version: "1.4.0"', "", False),
        ("schema: 1", "schema: 2", False),
    ],
)
def test_pins(old, new, valid):
    assert PINS_VALIDATOR.is_valid(yaml.safe_load(PINS.replace(old, new, 1))) == valid


@pytest.mark.parametrize(("name", "schema"), [("manifest", manifest_schema()), ("pins", pins_schema())])
def test_the_committed_schema_is_in_step(root, name, schema):
    file = root / "docs" / f"{name}.schema.json"
    update = f"afd-patchkit schema {'--pins ' if name == 'pins' else ''}--output docs/{file.name}"
    assert json.loads(file.read_text(encoding="utf-8")) == schema, f"run: {update}"


def test_our_manifests_are_valid(root):
    files = sorted((root / "manifests").rglob("*.yaml"))
    assert files
    for file in files:
        validator = PINS_VALIDATOR if file.name == "pins.yaml" else MANIFEST
        text = file.read_text(encoding="utf-8")
        assert [e.message for e in validator.iter_errors(yaml.safe_load(text))] == [], file


# ---- snippets -------------------------------------------------------------------------------------------------------


def written(body: object, pad: str = "") -> str:
    """A snippet as editors write it, the text of each place taken for what is filled in."""
    if not isinstance(body, (dict, list)):
        return re.sub(r"\$\{\d+:([^}]*)\}", r"\1", str(body))
    pairs = body.items() if isinstance(body, dict) else (("-", item) for item in body)
    lines = []
    for key, value in pairs:
        head = pad + (key if key == "-" else written(key) + ":")
        deep = isinstance(value, (dict, list))
        text = written(value, pad + "  ")
        lines.append(f"{head} {text.lstrip()}" if not deep or key == "-" else f"{head}\n{text}")
    return "\n".join(lines)


CASES = [(model, label, body) for model, items in SNIPPETS.items() for label, body in items]


@pytest.mark.parametrize(("model", "label", "body"), CASES, ids=[f"{m}: {label}" for m, label, _ in CASES])
def test_every_snippet_loads(model, label, body):
    text = written(body)
    if model in ("Pins", "Pin"):
        whole = text if model == "Pins" else f"schema: 1\npins:\n  name:\n{textwrap.indent(text, '    ')}"
        parse_pins(whole.encode(), "pins.yaml")
        assert PINS_VALIDATOR.is_valid(yaml.safe_load(whole))
        return
    if model == "Delta":
        text = f"symbol: a:b\nreason: r\ndeltas:\n{written([body], '  ')}"
    whole = text if model == "Manifest" else f"{HEAD}entries:\n  - {textwrap.indent(text, '    ').lstrip()}\n"
    assert problems(whole) == []
    assert MANIFEST.is_valid(yaml.safe_load(whole))


def test_snippets_stand_where_an_editor_looks_for_them():
    for schema, names in ((manifest_schema(), ("Entry", "GroupEntry", "Delta")), (pins_schema(), ("Pin",))):
        assert schema["defaultSnippets"][0]["body"]["schema"] == 1
        assert all(schema["$defs"][name]["defaultSnippets"] for name in names)
    assert all(hasattr(model, name) for name in SNIPPETS)
