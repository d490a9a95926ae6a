"""A package index on the loopback interface that can misbehave in every way that the resolvers must stand."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Hosted:
    """One file that the index offers."""

    filename: str
    data: bytes
    sha256: str | None = ""
    size: bool = True
    yanked: str | bool = False
    url: str | None = None


@dataclass
class Seen:
    """One request that came in."""

    path: str
    range: str | None
    authorization: str | None
    accept: str | None


@dataclass
class Index:
    """What the server serves, how it misbehaves, and what was asked of it.

    Attributes:
        faults: per path, what to do with the next requests: `status:N`, `truncate`, `drop`, `stall`, `trickle`, or `trickle:` with what
            never ends (`headers`, `informational`, `chunk-header`, `packed`, `redirect`).
        ranges: `yes`, `status:N`, `truncate`, `drop`, `ignore` (200), `refuse` (416), `wrong` (another range), `long` (more than asked for), `size` (another total).
        auth: `user:password` that every request must carry.
    """

    files: dict[str, list[Hosted]] = field(default_factory=lambda: defaultdict(list))
    faults: dict[str, list[str]] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    ranges: str = "yes"
    pages: str = "json"
    auth: str | None = None
    seen: list[Seen] = field(default_factory=list)
    url: str = ""
    release: threading.Event = field(default_factory=threading.Event)

    def add(self, filename: str, data: bytes, *, project: str = "acme", **fields: Any) -> Hosted:
        """Offer a file."""
        hosted = Hosted(filename, data, **fields)
        if hosted.sha256 == "":
            hosted.sha256 = hashlib.sha256(data).hexdigest()
        self.files[project].append(hosted)
        return hosted

    @property
    def simple(self) -> str:
        """The address to configure."""
        return f"{self.url}/simple"

    def asked(self, part: str) -> list[Seen]:
        """The requests whose path contains `part`."""
        return [seen for seen in self.seen if part in seen.path]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    index: Index

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test output clean."""

    def do_GET(self) -> None:
        index, path = self.index, urlsplit(self.path).path
        headers = self.headers
        index.seen.append(Seen(path, headers["Range"], headers["Authorization"], headers["Accept"]))
        if index.auth is not None:
            expected = "Basic " + base64.b64encode(index.auth.encode()).decode()
            if headers["Authorization"] != expected:
                self.reply(401, b"", "text/plain")
                return
        queue = index.faults.get(path) or []
        fault = queue.pop(0) if queue else ""
        if fault.startswith("status:"):
            self.reply(int(fault.partition(":")[2]), b"no", "text/plain")
        elif fault == "drop":
            self.close_connection = True
        elif fault == "stall":
            index.release.wait(600)
            self.close_connection = True
        elif fault.startswith("trickle:"):
            self.trickle(fault.partition(":")[2])
        elif path in index.redirects:
            self.send_response(302)
            self.send_header("Location", index.redirects[path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif path.startswith("/simple/"):
            self.page(path.split("/")[2], fault)
        else:
            self.file(path, fault)

    def page(self, project: str, fault: str) -> None:
        files = self.index.files.get(project)
        if not files:
            self.reply(404, b"", "text/plain")
        elif self.index.pages == "json":
            items = []
            for hosted in files:
                item: dict[str, Any] = {
                    "filename": hosted.filename,
                    "url": self.address(hosted),
                    "yanked": hosted.yanked,
                }
                item["hashes"] = {"sha256": hosted.sha256} if hosted.sha256 else {}
                if hosted.size:
                    item["size"] = len(hosted.data)
                items.append(item)
            body = json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": items}).encode()
            self.reply(200, body, "application/vnd.pypi.simple.v1+json", fault=fault)
        elif self.index.pages == "html":
            lines = ["<!DOCTYPE html><html><head><title>Links</title></head><body>"]
            for hosted in files:
                fragment = f"#sha256={hosted.sha256}" if hosted.sha256 else ""
                yanked = f' data-yanked="{html.escape(str(hosted.yanked))}"' if hosted.yanked else ""
                href = html.escape(self.address(hosted) + fragment)
                lines.append(f'<a href="{href}"{yanked}>{hosted.filename}</a><br/>')
            self.reply(200, "\n".join(lines).encode(), "text/html; charset=utf-8")
        else:
            self.reply(200, self.index.pages.encode(), "application/vnd.pypi.simple.v1+json")

    @staticmethod
    def address(hosted: Hosted) -> str:
        return hosted.url or f"../../files/{hosted.filename}"

    def file(self, path: str, fault: str) -> None:
        name = path.rpartition("/")[2]
        hosted = next((h for files in self.index.files.values() for h in files if h.filename == name), None)
        if hosted is None:
            self.reply(404, b"", "text/plain")
            return
        data, asked = hosted.data, re.match(r"bytes=(\d+)-(\d+)$", self.headers["Range"] or "")
        mode = self.index.ranges
        if asked is not None and mode.startswith("status:"):
            self.reply(int(mode.partition(":")[2]), b"", "text/plain")
            return
        if asked is not None and mode == "drop":
            self.close_connection = True
            return
        if asked is None or mode == "ignore":
            self.reply(200, data, "application/octet-stream", fault=fault)
            return
        first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
        if mode == "refuse":
            self.reply(416, b"", "text/plain", {"Content-Range": f"bytes */{len(data)}"})
            return
        if mode == "wrong":
            first, last = first + 1, last + 1
        total = len(data) + (mode == "size")
        body = data[first : last + 1] + (b"more" if mode == "long" else b"")
        extra = {"Content-Range": f"bytes {first}-{last}/{total}"}
        self.reply(
            206, body, "application/octet-stream", extra, fault=fault or ("truncate" if mode == "truncate" else "")
        )

    def trickle(self, what: str) -> None:
        """Send a little of `what` now and then, until the test is over or nobody reads."""
        chunked = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n"
        stored = b"\0\0\0\xff\xff"  # an empty block of deflate
        first, more = {
            "headers": (b"HTTP/1.1 200 OK\r\n", b"X-More: yes\r\n"),
            "informational": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
            "chunk-header": (chunked + b"\r\n5;", b"x"),
            "packed": (chunked + b"Content-Encoding: deflate\r\n\r\n", b"5\r\n" + stored + b"\r\n"),
            "redirect": (b"HTTP/1.1 302 Found\r\nLocation: /away\r\nContent-Length: 9999\r\n\r\n", b"x"),
        }[what]
        self.close_connection = True
        self.wfile.write(first)
        while not self.index.release.wait(0.02):
            self.wfile.write(more)

    def reply(self, status: int, body: bytes, kind: str, extra: dict[str, str] | None = None, fault: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for key, value in (extra or {}).items():
            self.send_header(key, value)
        self.end_headers()
        if fault == "truncate":
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif fault == "trickle":
            for at in range(min(len(body), 40)):
                self.wfile.write(body[at : at + 1])
                self.wfile.flush()
                if self.index.release.wait(0.05):
                    break
            self.close_connection = True
        else:
            self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up early are part of the tests."""


class Running:
    """A server in a thread, as a context manager."""

    def __enter__(self) -> Index:
        index = Index()
        handler = type("BoundHandler", (Handler,), {"index": index})
        self._server = Server(("127.0.0.1", 0), handler)
        index.url = f"http://127.0.0.1:{self._server.server_port}"
        self._index = index
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return index

    def __exit__(self, *exc: object) -> None:
        self._index.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
