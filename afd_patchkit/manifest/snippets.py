"""What an editor offers to begin with: the shortest thing of each kind that loads.

`defaultSnippets` is what language servers for YAML and editors make of a schema; validators pass it over. Code stands in quoted
strings of one line, since editors do not indent block scalars: the first longer one becomes `|`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Snippet = tuple[str, Mapping[str, Any]]
"""What it is called, and what is written: `${1:text}` is a place to fill in."""

_SYMBOL = "${1:package.module:Class.name}"
_REASON = "${2:why the pinned release needs it}"
_WHEN = [{"defines": "${3:package.module:Name}"}]
_NAME = "${1:what the delta does}"

SNIPPETS: Mapping[str, Sequence[Snippet]] = {
    "Manifest": (
        (
            "a manifest",
            {
                "schema": 1,
                "module": "${1:my_backport/module.py}",
                "summary": "${2:What the module is.}",
                "pin": "${3:pin}",
                "entries": [{"symbol": "${4:package.module:name}", "reason": "${5:why the pinned release needs it}"}],
            },
        ),
    ),
    "Entry": (
        ("copy: upstream's text with deltas", {"symbol": _SYMBOL, "kind": "copy", "reason": _REASON}),
        (
            "backport: text of a newer release",
            {"symbol": _SYMBOL, "kind": "backport", "pin": "${4:donor}", "reason": _REASON, "remove_when": _WHEN},
        ),
        (
            "delegate: upstream's signature, own body",
            {
                "symbol": _SYMBOL, "kind": "delegate", "via": "original", "reason": _REASON,
                "body": '"return __original__(...)"',
            },
        ),
        ("owned: a file of our own", {"kind": "owned", "part": "${1:parts/name.py}", "reason": _REASON}),
    ),
    "GroupEntry": (
        (
            "class: methods in a generated class",
            {
                "class": {
                    "name": "${1:Name}",
                    "bases": ["${2:package.module:Base}"],
                    "members": [{"symbol": "${3:package.module:Base.method}", "reason": "${4:why it is needed}"}],
                }
            },
        ),
    ),
    "Delta": (
        ("expr: change an expression", {"name": _NAME, "expr": '"${2:a > b}"', "with": '"__upstream__ and ${3:c}"'}),
        ("call: change one call", {"name": _NAME, "call": {"match": '"${2:f(...)}"', "set": {"${3:x}": '"${4:y}"'}}}),
        ("insert: add statements", {"name": _NAME, "insert": '"${2:x = 1}"', "before": '"${3:return ...}"'}),
        ("replace: wrap or replace statements", {"name": _NAME, "replace": '"${2:x = f(...)}"', "with": '"with ${3:y}: __upstream__"'}),
        ("remove: drop statements", {"name": _NAME, "remove": '"${2:x = f(...)}"'}),
        (
            "clause: add a clause",
            {"name": _NAME, "clause": {"of": '"${2:if a: ...}"', "add": '"${3:elif b: c()}"'}},
        ),
        ("parameter: add a parameter", {"name": _NAME, "parameter": {"add": '"${2:x: int = 0}"'}}),
        ("rebind: a name means something else", {"name": _NAME, "rebind": {"${2:Name}": '"${3:expression}"'}}),
    ),
    "Pins": (
        (
            "pins",
            {"schema": 1, "pins": {"${1:name}": {"distribution": "${1:name}", "version": '"${2:1.0}"', "role": "target"}}},
        ),
    ),
    "Pin": (
        ("target: what the code runs on", {"distribution": "${1:name}", "version": '"${2:1.0}"', "role": "target"}),
        ("donor: what a feature is taken from", {"distribution": "${1:name}", "version": '"${2:2.0}"', "role": "donor"}),
    ),
}  # fmt: skip


def snippets_of(model: str) -> list[dict[str, Any]]:
    """The snippets of a model, as a schema has them."""
    return [{"label": label, "body": body} for label, body in SNIPPETS.get(model, ())]
