"""Values that nobody expects, and documents and texts with some of them put in."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

NOWHERE = "/nonexistent-afd-fuzz"
"""A folder that no command may make."""
STRANGE = (
    "", " ", "\0", "\n", "a\nb", "\r", "\t", "\x1b[31m", "\x7f", "\u0085", "\u2028", "\u202e", "\ufeff", "\ufffe", "\ud800", "\udcff", "\U0010ffff",
    "é", "ﬁ", "\U0001d4b3", "..", ".", "//", f"{NOWHERE}/x", "../..", "a/../b", "C:/x", "\\\\x\\y", "~", "-", "--help", "*", "%s", "{}", "{0}", "$HOME", "`x`",
    "con", "NUL.py", "aux", "com1", "nul.txt", ".git", "GIT~1", ".upgrade.json", "outlines", "patchkit.lock", "pins.yaml", "__init__", "__pycache__",
    "None", "True", "null", "nan", "0", "-1", "1e999", "class", "import", "async", "__upstream__", "__original__", "__class__", "_", "...", "x=", "(",
    ")", "'", '"', "'''", "#", "\\", "lambda: 0", "yield", "await x", "return", "*a, **b", "f'{'", "a.b", "a:b", "a:b.c", ":", "acme.engine:Engine.step",
    "1.0", "1.0+local", "v1", "1!1.0", "main", "HEAD", "0" * 40, "0" * 64, "sha256:" + "0" * 64, "http://[", "file:///", "ssh://-o", "2026-01-01",
)  # fmt: skip
"""Short texts; as names, paths, patterns, code, versions or digests."""

_SIZES = (10, 100, 1000, 5000, 20_000, 100_000)


def size(random: Random) -> int:
    """A count, small ones as likely as large ones."""
    return random.choice(_SIZES)


def text(random: Random) -> str:
    """One text: strange, long, or both."""
    if random.random() < 0.7:
        return random.choice(STRANGE)
    if random.random() < 0.5:
        return random.choice(STRANGE) + random.choice(STRANGE)
    return random.choice(("a", "a.", "x/", "(", "é", "\n", "- ", "a\n")) * size(random)


def scalar(random: Random) -> Any:
    """One value that is no collection."""
    numbers = (0, 1, -1, 2, 7, 2**31, 2**63, -(2**64), 10**400, 0.5, float("inf"), float("nan"))
    return random.choice((None, True, False, random.choice(numbers), text(random), text(random), text(random)))


def nested(random: Random) -> Any:
    """A collection that is deep, wide, or neither."""
    count = size(random)
    inner = scalar(random)
    kind = random.randrange(6)
    if kind == 0:
        for _ in range(min(count, 5000)):
            inner = [inner]
        return inner
    if kind == 1:
        for _ in range(min(count, 5000)):
            inner = {"a": inner}
        return inner
    if kind == 2:
        return {f"k{n}": n for n in range(count)}
    if kind == 3:
        return [inner] * min(count, 20_000)
    if kind == 4:
        return [scalar(random) for _ in range(random.randrange(4))]
    return {str(scalar(random)): scalar(random) for _ in range(random.randrange(4))}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each container in a document with each of its keys."""
    found: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        holder = todo.pop()
        keys: Sequence[Any] = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                todo.append(holder[key])
    return found


def changed(document: Any, random: Random) -> Any:
    """The document with one to three things changed at places drawn at random."""
    document = copy.deepcopy(document)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        spots = places(document)
        if not spots:
            return nested(random)
        holder, key = random.choice(spots)
        _CHANGES[random.randrange(len(_CHANGES))](holder, key, random, spots)
    return document


def _replaced(holder: Any, key: Any, random: Random, spots: list[tuple[Any, Any]]) -> None:
    holder[key] = scalar(random) if random.random() < 0.7 else nested(random)


def _gone(holder: Any, key: Any, random: Random, spots: list[tuple[Any, Any]]) -> None:
    del holder[key]


def _moved(holder: Any, key: Any, random: Random, spots: list[tuple[Any, Any]]) -> None:
    """What stands somewhere else stands here too."""
    other, where = random.choice(spots)
    holder[key] = copy.deepcopy(other[where])


def _renamed(holder: Any, key: Any, random: Random, spots: list[tuple[Any, Any]]) -> None:
    if isinstance(holder, dict):
        names = [k for _, k in spots if isinstance(k, str)]
        holder[random.choice([*names, text(random)])] = holder.pop(key)
    else:
        holder.insert(key, copy.deepcopy(holder[key]))


def _many(holder: Any, key: Any, random: Random, spots: list[tuple[Any, Any]]) -> None:
    """The same again, many times."""
    count = min(size(random), 1000)
    if isinstance(holder, list):
        holder[key:key] = [copy.deepcopy(holder[key]) for _ in range(count)]
    else:
        holder.update({f"{key}{n}": copy.deepcopy(holder[key]) for n in range(count)})


def _lengthened(holder: Any, key: Any, random: Random, spots: list[tuple[Any, Any]]) -> None:
    old = holder[key]
    if isinstance(old, str):
        at = random.randrange(len(old) + 1)
        holder[key] = old[:at] + text(random) + old[at:]
    else:
        holder[key] = scalar(random)


_CHANGES: tuple[Callable[[Any, Any, Random, list[tuple[Any, Any]]], None], ...] = (
    _replaced, _replaced, _replaced, _gone, _moved, _renamed, _many, _lengthened, _lengthened,
)  # fmt: skip


def damaged(data: bytes, random: Random, words: Sequence[bytes] = ()) -> bytes:
    """Bytes with one to three of them lost, doubled, swapped or replaced."""
    for _ in range(random.choice((1, 1, 2, 3))):
        at, length = random.randrange(len(data) + 1), random.choice((1, 1, 2, 4, 8, 100, 5000))
        new = random.choice(
            (b"", data[at : at + length] * 2, data[at : at + length] * min(size(random), 5000), random.randbytes(length),
             b"\0" * length, b"\xff" * length, text(random).encode("utf-8", "surrogatepass"), *words)
        )  # fmt: skip
        data = random.choice((data[:at] + new + data[at + length :], data[:at] + new + data[at:], data[:at] + new))
    return data[: 32 * 2**20]
