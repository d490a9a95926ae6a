"""A sound little project with every kind of input, and the archives of its upstream."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
from typing import Any

import yaml

ENGINE = '''"""Steps."""

import functools

from .tools import helper

LIMIT = 3


class Base:
    def step(self, batch):
        return ("base", batch)


class Engine(Base):
    """Runs steps."""

    rank = 7

    def __init__(self, model):
        self.model = model

    def dispatch(self, batch, *, rank=0):
        return ("dispatch", batch, rank)

    def step(self, batch):
        """Run one step."""
        desc = self.dispatch(batch)
        # a batch may be large
        if len(batch) > 1:
            desc = (desc, batch)
        out = self.model(batch)
        return desc, helper(out, LIMIT), super().step(batch)


def total(values):
    out = 0
    for value in values:
        out += value
    return out
'''
TOOLS = "def helper(out, limit):\n    return (out, limit)\n\n\ndef spare(out, limit=0):\n    return out, limit\n"
UPSTREAM = {
    "acme/__init__.py": "",
    "acme/_version.py": "__version__ = '1.0'\n",
    "acme/engine.py": ENGINE,
    "acme/tools.py": TOOLS,
}
NEXT = {
    **UPSTREAM,
    "acme/engine.py": ENGINE.replace("self.dispatch(batch)", "self.dispatch(batch, rank=1)").replace("out = 0", "out = 1"),
    "acme/tools.py": TOOLS.replace("limit=0", "limit=1, more=2"),
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "manifests": "manifests",
    "generated": "generated",
    "package": "acme_patched",
    "lock": "patchkit.lock",
    "track": False,
    "marker": "acme",
}
PINS: dict[str, Any] = {
    "schema": 1,
    "pins": {
        "acme": {"distribution": "acme", "version": "1.0", "role": "target", "packages": ["acme"]},
        "acme-next": {"distribution": "acme", "version": "2.0", "role": "donor"},
    },
}
RUNNER: dict[str, Any] = {
    "schema": 1,
    "module": "acme_set/runner.py",
    "summary": "Step loop with seams.",
    "pin": "acme",
    "imports": ["from os import path", "from acme.engine import Engine"],
    "remove_when": [{"defines": "acme.engine:Overlap"}],
    "entries": [
        {
            "class": {
                "name": "Runner",
                "bases": ["Engine"],
                "doc": "Engine with seams.",
                "members": [
                    {
                        "symbol": "acme.engine:Engine.step",
                        "reason": "acme runs one batch per step.",
                        "functionality": "asks before it runs a large batch.",
                        "deltas": [
                            {"name": "ask", "expr": "len(batch) > 1", "with": "__upstream__ and path.exists(batch)"},
                            {"name": "own", "call": {"match": "self.dispatch(...)", "set": {"rank": "self.rank"}}},
                            {"name": "say", "insert": "x = 1", "before": "return ..."},
                            {
                                "name": "two",
                                "replace": "out = self.model(...)",
                                "with": "if batch:\n    __upstream__\n",
                            },
                        ],
                    }
                ],
            }
        },
        {"symbol": "acme.engine:total", "reason": "needed beside the runner.", "name": "own_total"},
        {"kind": "owned", "name": "own", "part": "parts/own.py", "reason": "ours.", "watch": ["acme.tools:helper"]},
    ],
}
OWN = '"""Ours."""\n\nfrom acme.tools import helper\n\n\ndef own():\n    """Own."""\n    return helper(1, 2)\n'


def yaml_of(document: Any) -> bytes:
    """A document as YAML; one that YAML cannot hold as JSON."""
    import json

    try:
        return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True).encode()
    except (yaml.YAMLError, ValueError, RecursionError):
        pass
    try:
        return json.dumps(document).encode()
    except RecursionError:
        return b"[" * 20_000


def toml_of(document: Mapping[str, Any]) -> bytes:
    """Settings as TOML, as far as TOML can say it."""
    lines = []
    for key, value in document.items():
        plain = key if key.isascii() and key.replace("_", "a").replace(".", "a").isalnum() else _quoted(key)
        lines.append(f"{plain} = {_toml(value)}\n")
    return "".join(lines).encode("utf-8", "surrogatepass")


def _toml(value: Any) -> str:
    """One value; iterative where it may be deep."""
    before, behind = "", ""
    while isinstance(value, list) and len(value) == 1:
        before, behind, value = before + "[", "]" + behind, value[0]
    if isinstance(value, bool):
        inner = str(value).lower()
    elif isinstance(value, str):
        inner = _quoted(value)
    elif isinstance(value, list):
        inner = "[" + ", ".join(_toml(v) for v in value) + "]"
    elif isinstance(value, dict):
        inner = (
            "{" + ", ".join(f"{_quoted(str(k))} = {_toml(v)}" for k, v in value.items()) + "}"
            if len(value) != 1
            else "{a.a.a = 1}"
        )
    else:
        inner = str(value)
    return before + inner + behind


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


class _Dumper(yaml.SafeDumper):
    """Texts in quotes: manifests want that of code."""


_Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


# ---- archives ---------------------------------------------------------------------------------------------------


def record(files: Mapping[str, bytes]) -> bytes:
    """The RECORD of a wheel."""
    rows = []
    for path, data in files.items():
        value = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={value},{len(data)}\n")
    return "".join([*rows, "acme-1.0.dist-info/RECORD,,\n"]).encode("utf-8", "surrogatepass")


def wheel(files: Mapping[str, str] = UPSTREAM, *, more: Mapping[str, bytes] | None = None, method: int = 8) -> bytes:
    """A wheel of acme 1.0, with more files, or with other contents of some of its own."""
    content = {path: text.encode() for path, text in files.items()}
    content["acme-1.0.dist-info/METADATA"] = b"Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n"
    content["acme-1.0.dist-info/WHEEL"] = b"Wheel-Version: 1.0\n"
    content.update(more or {})
    content.setdefault("acme-1.0.dist-info/RECORD", record(content))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for path, data in content.items():
            archive.writestr(zipfile.ZipInfo(path), data, method)
    return out.getvalue()


def sdist(members: list[tarfile.TarInfo | tuple[str, bytes]] | None = None, format: int = tarfile.PAX_FORMAT) -> bytes:
    """An sdist of acme 1.0, with more members."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=format) as archive:
        content = {f"acme-1.0/{path}": text.encode() for path, text in UPSTREAM.items()}
        content["acme-1.0/PKG-INFO"] = b"Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n"
        for member in [*content.items(), *(members or [])]:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return packed(raw.getvalue())


def packed(data: bytes, level: int = 1) -> bytes:
    """Data as gzip, the same each time."""
    return gzip.compress(data, level, mtime=0)
