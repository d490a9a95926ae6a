"""What is tried: one input of a sound project changed, and a command that reads it."""

from __future__ import annotations

import gzip
import html
import json
import struct
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tools.oracles.fuzz import project
from tools.oracles.fuzz.python import expression, hard, statements
from tools.oracles.fuzz.values import STRANGE, changed, damaged, scalar, size, text

OFFLINE = ("--offline", "--source", "acme=one", "--source", "acme-next=two")
MOVED = (
    "--pin",
    "acme=2.0",
    "--offline",
    "--source",
    "acme=two",
    "--source",
    "acme@1.0=one",
    "--source",
    "acme-next=two",
)
"""Of a command that moves the pin: a source is for where it moves to."""


@dataclass
class Case:
    """One try.

    Attributes:
        kind: what was changed.
        arguments: the command.
        files: path below the project to content; what the sound project has there is replaced.
        links: path to what it is: a pipe, a folder, or a link to somewhere.
        replies: what the index sends, by the beginning of the path asked for.
    """

    kind: str
    arguments: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    replies: dict[str, bytes] = field(default_factory=dict)


def draw(number: int, seed: int, sound: Mapping[str, bytes]) -> Case:
    """The case of this number; `sound` is the generated project."""
    random = Random(f"{seed}:{number}")
    kind = sorted(KINDS)[number % len(KINDS)]
    case = Case(kind, ())
    KINDS[kind](case, random, sound)
    return case


def _command(random: Random, *names: str) -> tuple[str, ...]:
    full = ("--full",) if random.random() < 0.5 else ()
    return {
        "check": ("check", *full, *OFFLINE),
        "regen": ("regen", *full, *OFFLINE),
        "upgrade": ("upgrade", *MOVED),
        "write": ("upgrade", "--write", *MOVED),
        "accept": ("accept", "--why", "x", "step", *MOVED),
        "pins": ("pins", *OFFLINE),
        "share": ("share", *OFFLINE),
        "diff": ("diff", *OFFLINE),
        "explain": ("explain", "acme_set/runner.py::own_total"),
        "inventory": ("inventory",),
        "other": ("regen", *MOVED),
    }[random.choice(names)]


def _settings(case: Case, random: Random, sound: Mapping[str, bytes]) -> None:
    case.arguments = _command(random, "check", "regen", "pins", "explain", "inventory", "upgrade")
    way = random.randrange(5)
    if way < 3:
        data = project.toml_of(changed(dict(project.SETTINGS), random))
    elif way == 3:
        data = damaged(project.toml_of(project.SETTINGS), random)
    else:
        key = random.choice(("a", "[a.b]\nc", "a.b", "[[a]]\nb", "package", '"x"', "a.a", "[a]\n[a", "'''a'''"))
        count = size(random)
        data = random.choice(
            (
                ".".join([key] * count) + " = 1\n",
                "".join(f"k{n}.{key} = 1\n" for n in range(count)),
                f"[{'.'.join(['a'] * count)}]\nb = 1\n",
                f"a = {'[' * count}{']' * count}\n",
                f"a = {'{a=' * count}1{'}' * count}\n",
                f"package = '{text(random)}'\n",
                f"a = {'9' * count}\n",
                "[[a]]\n" * count,
            )
        ).encode("utf-8", "surrogatepass")
    if random.random() < 0.3:
        case.files["afd-patchkit.toml"] = b""
        case.links["afd-patchkit.toml"] = "gone"
        data = random.choice((b"", b"[project]\nname = 'x'\n")) + b"[tool.afd-patchkit]\n" + data
        case.files["pyproject.toml"] = data
    else:
        case.files["afd-patchkit.toml"] = data


def _yaml(case: Case, random: Random, name: str, document: Any) -> None:
    way = random.randrange(6)
    if way < 4:
        case.files[name] = project.yaml_of(changed(document, random))
    elif way == 4:
        words = (
            b"&a ",
            b"*a",
            b"!!python/object:os.system ",
            b"<<: *a",
            b"---\n",
            b"...\n",
            b"%YAML 1.3\n",
            b"? ",
            b"|\n",
            b"- ",
            b"\t",
            b"{",
            b"}",
        )
        case.files[name] = damaged(project.yaml_of(document), random, words)
    else:
        count = size(random)
        bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, min(count, 300)))
        case.files[name] = random.choice(
            (bomb, "[" * count, "{a: " * count, "- " * count, "? " * count, "a: " * count, "!" * count, "&a " * count, "x: 1\n" * count,
             "a" * count + ": 1\n", "".join(f"k{n}: 1\n" for n in range(count)), "schema: 1\n---\n" * count, "- &a [*a]\n", "[" + "[]," * count + "]",
             '"' + "\\x00" * count + '"', "|\n" + " " * count + "x\n", "# x\n" * count)
        ).encode()  # fmt: skip


def _pins(case: Case, random: Random, sound: Mapping[str, bytes]) -> None:
    case.arguments = _command(random, "check", "regen", "upgrade", "write", "pins", "other", "accept")
    _yaml(case, random, "manifests/pins.yaml", project.PINS)


def _manifest(case: Case, random: Random, sound: Mapping[str, bytes]) -> None:
    case.arguments = _command(random, "regen", "regen", "check", "upgrade", "explain", "inventory", "share", "diff")
    _yaml(case, random, "manifests/acme_set/runner.yaml", project.RUNNER)


def _code(case: Case, random: Random, sound: Mapping[str, bytes]) -> None:
    """Code and patterns inside a manifest."""
    case.arguments = _command(random, "regen", "regen", "upgrade")
    document: Any = json.loads(json.dumps(project.RUNNER))
    (member,) = document["entries"][0]["class"]["members"]
    deltas = member["deltas"]
    written = random.choice((expression, statements, text))(random)
    key = random.choice(("with", "expr", "replace", "insert", "match", "imports", "many", "within"))
    if key == "imports":
        document["imports"].append(written)
    elif key == "match":
        deltas[1]["call"]["match"] = written
    elif key == "many":
        count = min(size(random), 5000)
        extra = random.choice(
            (
                {"insert": "x = 1", "before": "return ..."},
                {"insert": "x = 1", "at": "start"},
                {"expr": "batch", "with": "x"},
                {"take": "x"},
            )
        )
        deltas += [{"name": f"d{n}", **extra} for n in range(count)]
    elif key == "within":
        deltas.append({"name": "w", "insert": "x = 1", "at": "start", "within": {"from": written, "to": "..."}})
    else:
        random.choice(deltas)[key] = written
    case.files["manifests/acme_set/runner.yaml"] = project.yaml_of(document)


def _part(case: Case, random: Random, sound: Mapping[str, bytes]) -> None:
    case.arguments = _command(random, "regen", "regen", "check", "upgrade")
    if random.random() < 0.1:
        case.links["manifests/acme_set/parts/own.py"] = random.choice(
            ("pipe", "folder", "/dev/zero", "own.py", "../../..", "sparse")
        )
    else:
        case.files["manifests/acme_set/parts/own.py"] = hard(project.OWN, random)


def _upstream(case: Case, random: Random, sound: Mapping[str, bytes]) -> None:
    case.arguments = _command(random, "regen", "regen", "check", "upgrade", "other", "write")
    name = random.choice(("engine", "engine", "tools", "_version", "__init__"))
    tree = random.choice(("one", "two"))
    if random.random() < 0.05:
        case.links[f"{tree}/acme/{name}.py"] = random.choice(("pipe", "folder", "/dev/zero", "sparse", f"{name}.py"))
    else:
        case.files[f"{tree}/acme/{name}.py"] = hard(project.UPSTREAM[f"acme/{name}.py"] or "x = 1\n", random)


_STATE = (
    "generated/patchkit.lock",
    "generated/patchkit.lock",
    "generated/.upgrade.json",
    "manifests/accepted.json",
    "generated/outlines/acme_set/runner.outline",
)


def _lock(case: Case, random: Random, sound: Mapping[str, bytes]) -> None:
    case.arguments = _command(
        random, "check", "check", "regen", "upgrade", "write", "pins", "share", "accept", "inventory"
    )
    name = random.choice(_STATE)
    old = sound.get(name, b'{"schema": 1, "accepted": []}')
    if random.random() < 0.06:
        case.links[name] = random.choice(("pipe", "folder", "/dev/zero", "sparse", "../canary", "patchkit.lock"))
        return
    if name.endswith("outline") or random.random() < 0.3:
        case.files[name] = damaged(old, random)
        return
    if name.endswith(".upgrade.json"):
        document: Any = {
            random.choice(("manifests/pins.yaml", "../canary", text(random))): random.choice(
                (None, text(random), scalar(random))
            )
        }
        if random.random() < 0.5:
            document = {"schema": 1, "files": document, "record": "0" * 64}
    else:
        document = json.loads(old)
        for found in (*document.get("modules", {}).values(), *document.get("pins", {}).values()):
            if random.random() < 0.8:
                found.pop("record", None)
    case.files[name] = _json(changed(document, random))


def _json(document: Any) -> bytes:
    try:
        return json.dumps(document, indent=1, sort_keys=False).encode()
    except RecursionError:
        return b"[" * 50_000 + b"]" * 50_000


# ---- archives ---------------------------------------------------------------------------------------------------


def _archive(case: Case, random: Random, sound: Mapping[str, bytes]) -> None:
    name, data = _archives(random)
    case.files[name] = data
    case.arguments = ("regen", "--offline", "--source", f"acme={name}", "--source", "acme-next=two")


def _archives(random: Random) -> tuple[str, bytes]:
    if random.random() < 0.5:
        data = _wheel(random)
        name = "acme-1.0-py3-none-any.whl"
    else:
        data = _sdist(random)
        name = random.choice(("acme-1.0.tar.gz", "acme-1.0.tar.gz", "acme-1.0.zip"))
    if random.random() < 0.6:
        data = damaged(data, random, (b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"\x1f\x8b\x08\0"))
    return name, data


def _wheel(random: Random) -> bytes:
    more: dict[str, bytes] = {}
    way = random.randrange(8)
    if way == 0:
        more[text(random)[:60_000] or "x"] = b"x"
    elif way == 1:
        more["acme/bomb.py"] = b"#" * random.choice((10**6, 70 * 2**20, 200 * 2**20))
    elif way == 2:
        more["acme-1.0.dist-info/RECORD"] = damaged(
            project.record({k: v.encode() for k, v in project.UPSTREAM.items()}), random, (b'"', b",", b"\n")
        )
    elif way == 3:
        more |= {f"acme/m{n}.py": b"" for n in range(min(size(random), 20_000))}
    elif way == 4:
        more["acme-1.0.dist-info/METADATA"] = damaged(b"Name: acme\nVersion: 1.0\n", random)
    elif way == 5:
        more[
            f"acme-1.0.data/{random.choice(('purelib', 'platlib', 'scripts'))}/acme/{random.choice(('engine', 'x'))}.py"
        ] = b"x = 1\n"
    data = bytearray(project.wheel(more=more, method=random.choice((0, 8, 8, 12, 14))))
    if random.random() < 0.4:  # a field of a record that says where the rest is
        where = data.rfind(random.choice((b"PK\1\2", b"PK\5\6", b"PK\3\4")))
        at = where + random.randrange(4, 44)
        struct.pack_into(
            random.choice(("<H", "<L")),
            data,
            min(max(at, 0), len(data) - 4),
            random.choice((0, 1, 8, 99, 0xFFFF, random.randrange(0x10000))),
        )
    return bytes(data)


def _sdist(random: Random) -> bytes:
    members: list[tarfile.TarInfo | tuple[str, bytes]] = []
    for _ in range(random.choice((0, 1, 1, 2))):
        info = tarfile.TarInfo(
            f"acme-1.0/acme/{random.choice(('x.py', 'engine.py', text(random)[:5000]))}".replace("\ud800", "").replace(
                "\udcff", ""
            )
        )
        info.type = random.choice(
            (
                tarfile.REGTYPE,
                tarfile.SYMTYPE,
                tarfile.LNKTYPE,
                tarfile.FIFOTYPE,
                tarfile.CHRTYPE,
                tarfile.DIRTYPE,
                tarfile.CONTTYPE,
                b"S",
                b"x"[:1],
            )
        )
        info.linkname = random.choice(("../../../x", "/etc/passwd", "engine.py", "a" * 200, ""))
        key = random.choice(
            (
                "path",
                "size",
                "GNU.sparse.map",
                "GNU.sparse.major",
                "GNU.sparse.realsize",
                "mtime",
                "hdrcharset",
                "linkpath",
                "uid",
            )
        )
        info.pax_headers = (
            {key: random.choice(("-1", "1e999", "9" * 5000, "nan", "\0", "x", "0,0,1", "../x", ""))}
            if random.random() < 0.6
            else {}
        )
        members.append(info)
    try:
        data = project.sdist(members, random.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT)))
    except (ValueError, UnicodeError, OverflowError):
        data = project.sdist()
    way = random.randrange(6)
    raw = gzip.decompress(data)
    if way == 0:
        data = project.packed(damaged(raw, random), 1)
    elif way == 1:
        data += project.packed(b"\0" * 10**6, 9) * random.choice((1, 100))
    elif way == 2:
        data = project.packed(raw[:-1024] + b"\0" * random.choice((0, 512, 100 * 2**20)), 9)
    elif way == 3:
        data = project.packed(project.packed(raw))
    return data


# ---- the index --------------------------------------------------------------------------------------------------

_HEADERS = ("Content-Type", "Content-Length", "Content-Encoding", "Content-Range", "Location", "Retry-After", "Transfer-Encoding", "Set-Cookie", "Connection",
            "Link", "ETag", "X-" + "a" * 5000, "Trailer", "WWW-Authenticate", "Upgrade", "Age")  # fmt: skip


def _index(case: Case, random: Random, sound: Mapping[str, bytes]) -> None:
    case.arguments = random.choice(
        (
            ("regen", "--timeout", "30"),
            ("pins", "--newer", "acme"),
            ("upgrade", "--pin", "acme=latest"),
            ("check", "--full"),
        )
    )
    name = "acme-1.0-py3-none-any.whl"
    data = project.wheel()
    rows: list[Any] = [
        {"filename": f, "url": f"/files/{f}", "hashes": {"sha256": _sha256(d)}, "size": len(d), "yanked": False}
        for f, d in ((name, data), ("acme-2.0-py3-none-any.whl", data), ("acme-1.0.tar.gz", project.sdist()))
    ]
    page: Any = {"meta": {"api-version": "1.0"}, "name": "acme", "files": rows}
    as_json = random.random() < 0.6
    broken = random.choice(("page", "page", "headers", "headers", "file", "archive", "bytes"))
    if broken == "page":
        page = changed(page, random)
    if broken == "archive":
        files = dict([_archives(random)])
        ((name, data),) = files.items()
        page["files"] = [
            {"filename": name, "url": f"/files/{name}", "hashes": {"sha256": _sha256(data)}, "size": len(data)}
        ]
    body = _json(page) if as_json else _html(page, random, broken == "page")
    kind = (
        b"application/vnd.pypi.simple.v1+json"
        if as_json
        else b"text/html; charset=" + random.choice((b"utf-8", b"x", b"utf-16", b"utf-7", b"rot13", b""))
    )
    case.replies["/simple/"] = _reply(b"200 OK", {b"Content-Type": kind}, body)
    case.replies["/files/"] = _reply(b"200 OK", {}, data)
    if broken == "headers":
        where = random.choice(("/simple/", "/files/"))
        case.replies[where] = _strange_reply(random, body if where == "/simple/" else data)
    elif broken == "file":
        case.replies["/files/"] = _reply(b"200 OK", {}, damaged(data, random))
    elif broken == "bytes":
        case.replies["/simple/"] = damaged(
            case.replies["/simple/"],
            random,
            (b"\r\n", b"\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, b"HTTP/1.1 200 OK\r\n"),
        )


def _sha256(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def _reply(status: bytes, headers: Mapping[bytes, bytes], body: bytes) -> bytes:
    lines = [b"HTTP/1.1 " + status, *(name + b": " + value for name, value in headers.items())]
    if b"Content-Length" not in headers:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*lines, b"Connection: close", b"", body])


def _strange_reply(random: Random, body: bytes) -> bytes:
    status = random.choice(
        (
            b"200 OK",
            b"206 Partial",
            b"302 Found",
            b"404 No",
            b"503 No",
            b"416 No",
            b"429 No",
            b"100 Go",
            b"999 X",
            b"000 X",
            b"-1 X",
            b"200",
            b"abc",
        )
    )
    headers = {b"Content-Type": b"text/html"}
    for _ in range(random.choice((1, 1, 2, 3))):
        value = random.choice(
            (text(random)[:90_000], "9" * size(random), "-1", "0", "gzip", "gzip, gzip", "deflate", "br", "chunked", "bytes 0-1/2", "bytes */0", "bytes 0-9/*",
             "identity", "/simple/acme/", "//", "http://127.0.0.1:1/", "Wed, 21 Oct 2099 07:28:00 GMT", "1e9", "nan", "close", random.choice(STRANGE))
        )  # fmt: skip
        headers[random.choice(_HEADERS).encode()] = value.encode("utf-8", "surrogatepass").replace(b"\n", b" ")
    if random.random() < 0.2:
        body = project.packed(b"0" * random.choice((10, 10**6, 100 * 2**20)), 9)
    return _reply(status, headers, body)


def _html(page: Any, random: Random, broken: bool) -> bytes:
    rows = page.get("files", []) if isinstance(page, dict) else []
    lines = ["<!DOCTYPE html><html><head><title>Links</title></head><body>"]
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict):
            hashes = row.get("hashes")
            digest = hashes.get("sha256") if isinstance(hashes, dict) else hashes
            href = html.escape(f"{row.get('url')}#sha256={digest}"[:200_000])
            lines.append(
                f'<a href="{href}" data-yanked="{str(row.get("yanked"))[:1000]}">{str(row.get("filename"))[:200_000]}</a><br/>'
            )
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    return (
        damaged(
            data, random, (b"<a ", b"<!--", b"<base href='http://['>", b"&#0;", b"&#xD800;", b"<script>", b"</a>" * 500)
        )
        if broken
        else data
    )


def _arguments(case: Case, random: Random, sound: Mapping[str, bytes]) -> None:
    """Strange words on the command line."""
    word = "".join(c for c in text(random)[:3000] if c != "\0").encode("utf-8", "ignore").decode()
    below = f"x{word}".replace("..", "_").replace("/", "_")
    case.arguments = random.choice(
        (
            ("explain", word), ("diff", *OFFLINE, word), ("regen", *OFFLINE, word), ("check", f"--pin=acme={word}", *OFFLINE), ("check", "--source", f"acme={word}"),
            ("aliases", word, *OFFLINE), ("accept", word, "--why", word, *MOVED), ("regen", "--into", below, *OFFLINE), ("schema", word),
            ("upgrade", "--pin", f"acme={word}", *OFFLINE), ("upgrade", "--report", below, *MOVED), ("check", "--project", word),
            ("regen", f"--pin={word}", *OFFLINE), ("share", word, *OFFLINE), ("pins", word), ("diff", "--base", word, *OFFLINE), ("check", "--timeout", word),
            ("inventory", "-o", below), ("check", "--format", word), (word,), ("completion", word), ("check", "--jobs", word),
        )
    )  # fmt: skip


KINDS: dict[str, Callable[[Case, Random, Mapping[str, bytes]], None]] = {
    "archive": _archive,
    "arguments": _arguments,
    "code": _code,
    "index": _index,
    "lock": _lock,
    "manifest": _manifest,
    "part": _part,
    "pins": _pins,
    "settings": _settings,
    "upstream": _upstream,
}
