"""Which index is asked, with which certificates: uv's and pip's settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.upstream.base import Artifact
from afd_patchkit.upstream.options import default_cache_dir
from afd_patchkit.upstream.resolve import SourceOptions
from afd_patchkit.upstream.settings import index_settings, pip_config, pip_config_files, redact, timeout_setting
from tests.upstream.conftest import Open, code
from tests.upstream.packages import FILES, digest, make_wheel
from tests.upstream.server import Index

A, B, C, D = (f"https://{name}.example/simple" for name in "abcd")


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An own pip configuration file."""
    file = tmp_path / "pip.conf"
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site"))
    monkeypatch.setattr("sys.prefix", str(tmp_path / "venv"))
    return file


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, (PYPI_SIMPLE_ENDPOINT,)),
        ({"PIP_INDEX_URL": A}, (A,)),
        ({"PIP_INDEX_URL": A, "UV_INDEX_URL": B}, (B,)),
        ({"PIP_INDEX_URL": A, "UV_INDEX_URL": B, "UV_DEFAULT_INDEX": C}, (C,)),
        ({"UV_DEFAULT_INDEX": f"corp={A}"}, (A,)),
        ({"UV_DEFAULT_INDEX": f"{A}?x=1"}, (f"{A}?x=1",)),
        ({"PIP_INDEX_URL": A, "PIP_EXTRA_INDEX_URL": f"{B} {C}", "UV_INDEX": f"n={D}"}, (A, D, B, C)),
        ({"PIP_INDEX_URL": A, "PIP_EXTRA_INDEX_URL": f"file:///opt/simple {A}"}, (A,)),
        ({"PIP_INDEX_URL": "  "}, (PYPI_SIMPLE_ENDPOINT,)),
    ],
)
def test_index_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], expected: tuple[str, ...]
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert index_settings().urls == expected


def test_pip_config_files(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        tmp_path / "site/pip/pip.conf": f"[global]\nindex-url = {A}\nextra-index-url = {B}\n  {C}\n",
        tmp_path / "user/pip/pip.conf": f"[global]\nindex_url = {B}\ncert = {config}\n[install]\nindex-url = {D}\n",
        tmp_path / "venv/pip.conf": f"[global]\nindex-url = {C}\n",
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    listed = list(pip_config_files())
    assert [listed.index(file) for file in files] == sorted(listed.index(file) for file in files)
    assert pip_config()["index-url"] == C
    config.write_text(f"[global]\nindex-url = {D}\n")
    assert listed[-1] == config
    settings = index_settings()
    assert settings.urls == (D, B, C)
    assert settings.ca_file == str(config)
    monkeypatch.setenv("PIP_INDEX_URL", A)
    assert index_settings().urls[0] == A
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert pip_config() == {}


@pytest.mark.parametrize("text", ["no section\n", "[global]\nindex-url\n", "[global]\n[global]\n", "\xff"])
def test_broken_pip_config(config: Path, text: str) -> None:
    config.write_bytes(text.encode("latin-1"))
    with pytest.raises(UpstreamError, match=r"pip\.conf cannot be read") as error:
        index_settings()
    assert code(error) == "PK410"


@pytest.mark.parametrize("url", ["ftp://x/simple", "x/simple", "file:///opt/simple"])
def test_index_that_is_no_http_address(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", url)
    with pytest.raises(UpstreamError, match="no http or https address") as error:
        index_settings()
    assert code(error) == "PK410"


def test_no_index(monkeypatch: pytest.MonkeyPatch, open_acme: Open, index: Index) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert index_settings().disabled
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme(index_urls=None)
    assert "index: no-index is set for pip" in error.value.findings[0].details


def test_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, open_acme: Open, index: Index) -> None:
    assert index_settings().ca_file is None
    for name in ("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "PIP_CERT"):  # weakest first
        bundle = tmp_path / name
        bundle.write_text("")
        monkeypatch.setenv(name, str(bundle))
        assert index_settings().ca_file == str(bundle)
    index.add("acme-1.0-py3-none-any.whl", make_wheel())
    with pytest.raises(UpstreamError, match=r"certificate bundle .* cannot be used") as error:
        open_acme()
    assert code(error) == "PK410"
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "gone.pem"))
    with pytest.raises(UpstreamError, match="does not exist") as error:
        index_settings()
    assert code(error) == "PK410"


def test_index_settings_reach_the_network(monkeypatch: pytest.MonkeyPatch, open_acme: Open, index: Index) -> None:
    index.add("acme-1.0-py3-none-any.whl", make_wheel())
    monkeypatch.setenv("PIP_INDEX_URL", index.simple + "/")
    assert open_acme(index_urls=None).read("acme.engine").text == FILES["acme/engine.py"]


def test_warm_run_reads_no_settings(monkeypatch: pytest.MonkeyPatch, open_acme: Open, index: Index) -> None:
    data = make_wheel()
    index.add("acme-1.0-py3-none-any.whl", data)
    open_acme().read("acme.engine")
    monkeypatch.setenv("PIP_INDEX_URL", "nonsense")
    artifact = Artifact("wheel", "acme-1.0-py3-none-any.whl", digest(data))
    upstream = open_acme(
        index_urls=None, locked_artifact=artifact, locked={"acme/engine.py": digest(FILES["acme/engine.py"])}
    )
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache_dir().name == "afd-patchkit"
    monkeypatch.setenv("AFD_PATCHKIT_CACHE", str(tmp_path / "mine"))
    assert default_cache_dir() == tmp_path / "mine"
    assert SourceOptions().store.root == tmp_path / "mine" / "v1"
    assert SourceOptions(cache_dir=tmp_path / "given").store.root == tmp_path / "given" / "v1"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://u:p@h.example/simple?token=x#y", "https://h.example/simple"),
        ("https://u:p%40@h.example:8443/simple", "https://h.example:8443/simple"),
        ("https://token@h.example", "https://h.example"),
        ("http://h/simple", "http://h/simple"),
    ],
)
def test_redact(url: str, shown: str) -> None:
    assert redact(url) == shown


@pytest.mark.parametrize(
    ("env", "pip", "expected"),
    [
        ({}, "", 30.0),
        ({}, "7", 7.0),
        ({"PIP_DEFAULT_TIMEOUT": "8"}, "7", 8.0),
        ({"PIP_DEFAULT_TIMEOUT": "8", "UV_HTTP_TIMEOUT": "9.5"}, "7", 9.5),
        ({"UV_HTTP_TIMEOUT": "9", "AFD_PATCHKIT_TIMEOUT": "10"}, "", 10.0),
        ({"UV_HTTP_TIMEOUT": " "}, "", 30.0),
    ],
)
def test_timeout_from_the_usual_settings(
    config: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], pip: str, expected: float
) -> None:
    if pip:
        config.write_text(f"[global]\ntimeout = {pip}\n")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert timeout_setting() == expected
    assert SourceOptions().network.timeout == expected
    assert SourceOptions(timeout=3).network.timeout == 3


@pytest.mark.parametrize("text", ["x", "0", "-1", "nan", "inf", "1e9", "9" * 5000, "\u00b2"])
def test_timeout_that_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("UV_HTTP_TIMEOUT", text)
    with pytest.raises(UpstreamError, match="time-out") as error:
        timeout_setting()
    assert code(error) == "PK410"
