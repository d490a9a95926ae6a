"""Answers of an index that somebody wrote to hurt: bounded, and an error of the index, never a fault of the tool."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from afd_patchkit.findings.errors import PatchkitError, UpstreamError
from afd_patchkit.model import Pin
from afd_patchkit.upstream import network
from afd_patchkit.upstream.network import FetchError, Network, Stats, _number
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.releases import newer_releases
from afd_patchkit.upstream.resolve import open_upstream
from afd_patchkit.upstream.settings import IndexSettings
from afd_patchkit.upstream.simple import project_files

Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


@pytest.fixture
def served() -> Iterator[Callable[[Answer], str]]:
    """Starts a server that gives one answer to everything, and gives its address."""
    servers = []

    def serve(answer: Answer) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            do_GET = answer

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def answer(body: bytes, kind: str = "text/html", status: int = 200, **headers: str) -> Answer:
    def given(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return given


def asked(url: str) -> list[network.IndexFile]:
    connections = Network(IndexSettings((url,)), timeout=5, retries=0, backoff=0)
    return project_files(connections, url, "acme", Stats())


PAGE = b'<a href="acme-1.0-py3-none-any.whl#sha256=' + b"0" * 64 + b'">acme-1.0-py3-none-any.whl</a><br>\n'


@pytest.mark.parametrize("name", ["acme-1.0" + "-1" * 40_000 + ".tar.gz", "a-" * 40 + "1.0.zip", "a" * 256])
@pytest.mark.parametrize("as_json", [False, True])
def test_names_of_very_many_parts_are_no_names(served, name, as_json):
    """A parser needs cubic time for them."""
    row = {"filename": name, "url": "x", "hashes": {}}
    sound = {"filename": "acme-1.0.tar.gz", "url": "y", "hashes": {}}
    page = json.dumps({"meta": {"api-version": "1.0"}, "name": "acme", "files": [row, sound]}).encode()
    kind = "application/vnd.pypi.simple.v1+json" if as_json else "text/html"
    body = page if as_json else f'<a href="x">{name}</a><br><a href="y"><b>acme-1.0</b>.tar.gz</a>'.encode()
    assert [file.filename for file in asked(served(answer(body, kind)))] == ["acme-1.0.tar.gz"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_sound_page(served, packed):
    body = gzip.compress(PAGE * 3) if packed else PAGE * 3
    files = asked(served(answer(body, **({"Content_Encoding": "gzip"} if packed else {}))))
    assert [file.filename for file in files] == ["acme-1.0-py3-none-any.whl"] * 3


@pytest.mark.parametrize("encoding", ["gzip, gzip", "gzip,deflate", "br", "zstd", "x" * 5000, "\u00b2"])
def test_a_page_is_packed_once_at_most(served, encoding):
    body = gzip.compress(gzip.compress(b"0" * 10**7))
    with pytest.raises(FetchError, match="which was not asked for"):
        asked(served(answer(body, Content_Encoding=encoding)))


def test_a_page_that_becomes_absurdly_long(served, monkeypatch):
    monkeypatch.setattr(network, "_PAGE_LIMIT", 2**20)
    with pytest.raises(FetchError, match="absurdly long"):
        asked(served(answer(gzip.compress(b"0" * 2**22), Content_Encoding="gzip")))


@pytest.mark.parametrize(
    "piece", [b"<", b"<!--", b"<a", b"<a>", b"<div>", b"</a>", b"<a x='", b"<?", b"<!", b"<![CDATA[", b"<script>", b"<p><a></p>", b"<a x "]
)  # fmt: skip
def test_html_that_a_parser_needs_quadratic_time_for(served, piece):
    with pytest.raises(FetchError, match="its HTML is torn"):
        asked(served(answer(piece * 300_000)))


def test_a_tag_that_does_not_end(served):
    with pytest.raises(FetchError, match="its HTML is torn"):
        asked(served(answer(b"<a " + b"x " * 300_000 + b">")))


@pytest.mark.parametrize(
    "url", ["http://[", "http://[::1/x", "//[bad]/x", "https://a:port/x", "\udcff", "http://a\x01b/"]
)
def test_addresses_of_files_that_are_none(served, url):
    row = f'<a href="{url}#sha256={"0" * 64}">acme-1.0-py3-none-any.whl</a>'.encode("utf-8", "surrogateescape")
    address = served(answer(row))
    options = SourceOptions(index_urls=(address,), cache_dir=Path("/nonexistent"), search_path=(), retries=0, timeout=5)
    with pytest.raises(UpstreamError) as caught:
        open_upstream("acme", Pin(distribution="acme", version="1.0"), options)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("value", ["\u00b2", "9" * 5000, "-1", "1.5", "", "inf", "0x1"])
def test_numbers_in_headers_that_are_none(served, value):
    assert _number(value) is None
    with pytest.raises(FetchError, match="status 503"):
        asked(served(answer(b"", status=503, Retry_After=value)))
    connections = Network(IndexSettings(()), timeout=5, retries=0, backoff=0)
    where = served(answer(b"0123456789", status=206, Content_Range=f"bytes 0-9/{value}"))
    with pytest.raises(FetchError, match="answers the range"):
        connections.range(where, 0, 10, Stats())


def test_a_file_of_which_nobody_says_how_long_it_is(served, monkeypatch, tmp_path):
    monkeypatch.setattr(network, "_FILE_LIMIT", 2**20)

    def endless(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(bytes(2**16))
        except OSError:
            handler.close_connection = True

    connections = Network(IndexSettings(()), timeout=60, retries=0, backoff=0)
    with (tmp_path / "x").open("w+b") as out, pytest.raises(FetchError, match="absurdly long"):
        connections.download(served(endless), out, Stats(), size=None, progress=None)


NOWHERE = [
    "http://[", "http://[::1", "http://[::1]:x/", "//", "///", "http:///x", "http://", "https://", "http://x:99999/", "http://x:-1/", "http://a..b/",
    "http://" + "a" * 70 + "/", "http://" + "a." * 200, "http://xn--a/", "http://xn--/", "http://\x80/", "http://\xff\xfe/", "http://%00/", "http://a%zz/",
    "http://a b/", "http://@", "http://:@:/", "http://?", "http://#", "javascript:1", "mailto:x", "http:x", "\\\\x", "http://0x7f.1:1/", "x" * 60_000,
    "", "?", "http://\u00e4.invalid/", "http://.invalid/", "http://127.0.0.1:1/" + "a" * 60_000, "ht!tp://x/", "://", "http://*.invalid/", "http://a_b.invalid/",
]  # fmt: skip


@pytest.mark.parametrize("where", NOWHERE)
def test_redirects_to_nonsense(served, tmp_path, where):
    seen = []

    def away(handler: http.server.BaseHTTPRequestHandler) -> None:
        seen.append(handler.path)
        handler.send_response(302)
        handler.send_header("Content-Length", "0")
        handler.wfile.write(b"".join(handler._headers_buffer))  # send_header refuses what is not Latin-1
        handler._headers_buffer.clear()
        handler.wfile.write(b"Location: " + where.encode("utf-8") + b"\r\n\r\n")

    address = served(away)
    options = SourceOptions(index_urls=(address,), cache_dir=tmp_path, search_path=(), retries=1, backoff=0, timeout=60)
    with pytest.raises(UpstreamError) as caught:
        open_upstream("acme", Pin(distribution="acme", version="1.0"), options)
    assert caught.value.exit_code == 3
    assert len(seen) < 20


STRANGE = ["\ud800", "\0", "\n", "\x1b[2J", "\ufffe", "%00", "a" * 5000, ".."]


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("place", ["url", "filename", "sha256", "yanked", "name", "host", "fragment", "size", "key"])
def test_strange_characters_in_pages(served, tmp_path, strange, place):
    name = "acme-1.0-py3-none-any.whl"
    row = {"filename": name, "url": f"http://127.0.0.1:1/{name}", "hashes": {"sha256": "0" * 64}}
    page = {"meta": {"api-version": "1.1"}, "name": "acme", "files": [row]}
    if place == "url":
        row["url"] += strange
    elif place == "host":
        row["url"] = f"http://127.0.0.1{strange}:1/{name}"
    elif place == "fragment":
        row["url"] += f"#sha256={strange}"
    elif place == "filename":
        row["filename"] = f"acme-1.0{strange}-py3-none-any.whl"
    elif place == "sha256":
        row["hashes"] = {"sha256": strange, strange: "0" * 64}
    elif place == "name":
        page["name"] = strange
    else:
        row[{"yanked": "yanked", "size": "size"}.get(place, strange)] = strange
    address = served(answer(json.dumps(page).encode(), "application/vnd.pypi.simple.v1+json"))
    options = SourceOptions(index_urls=(address,), cache_dir=tmp_path, search_path=(), retries=0, backoff=0, timeout=60)
    with pytest.raises(UpstreamError) as caught:
        open_upstream("acme", Pin(distribution="acme", version="1.0"), options)
    assert caught.value.exit_code == 3
    with suppress(PatchkitError):
        newer_releases("acme", Pin(distribution="acme", version="0.5"), options)


URLS = [
    "http://[", "http://[::1", "https://a b/", "http://x:port/", "http://x:99999999/", "http://" + "a" * 300 + "/", "https://u:p@ss@[bad]/",
    "http://x/\udcff", "http:///simple", "http://.", "http://a..b/", "http://x\x01y/", "https://127.0.0.1:1/simple\n", "http://xn--a/", "http://?",
    "http://127.0.0.1:-1/", "http://x\r\nHost: y/", "http://x:80:80/", "http://@/", "http://u\u2603:p@127.0.0.1:1/", "http://" + "a." * 200,
]  # fmt: skip


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("name", ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX", "UV_INDEX_URL"])
def test_an_index_that_is_no_address(monkeypatch, tmp_path, name, url):
    for other in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX", "UV_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv(name, url)
    options = SourceOptions(cache_dir=tmp_path, search_path=(), retries=0, backoff=0, timeout=2)
    pin = Pin(distribution="nosuch-zzz", version="1.0")
    for ask in (lambda: open_upstream("acme", pin, options), lambda: newer_releases("acme", pin, options)):
        with pytest.raises(PatchkitError) as caught:
            ask()
        assert caught.value.exit_code == 3
