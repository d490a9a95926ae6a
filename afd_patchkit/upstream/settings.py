"""The package index from the usual settings: which addresses, which certificates."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from afd_patchkit.upstream.failures import bad_setting


def redact(url: str) -> str:
    """`url` without user name, password and query, for messages and for the cache."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(an address that cannot be read)"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


# ---- the package index ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IndexSettings:
    """The package indexes to ask, in order.

    Attributes:
        urls: simple-API addresses; may hold credentials, so print only `redact(url)`.
        ca_file: certificate bundle, if one is configured.
        disabled: why no index may be asked, if so.
    """

    urls: tuple[str, ...]
    ca_file: str | None = None
    disabled: str | None = None


def index_settings() -> IndexSettings:
    """The index from uv's and pip's environment variables, pip's configuration files, or the default.

    Raises:
        UpstreamError: a configuration file cannot be read, or an address is no http(s) address (PK410).
    """
    env = os.environ
    pip = pip_config()
    chosen = [
        ("UV_DEFAULT_INDEX", _uv_url(env.get("UV_DEFAULT_INDEX", ""))),
        ("UV_INDEX_URL", env.get("UV_INDEX_URL", "")),
        ("PIP_INDEX_URL", env.get("PIP_INDEX_URL", "")),
        ("index-url in pip's configuration", pip.get("index-url", "")),
    ]
    origin, first = next(((origin, url.strip()) for origin, url in chosen if url.strip()), ("default", ""))
    if not first:
        from pypi_simple import PYPI_SIMPLE_ENDPOINT

        first = PYPI_SIMPLE_ENDPOINT
    if not _is_web(first):
        raise bad_setting(
            f"the package index {redact(first)} ({origin}) is no http or https address",
            "Correct the setting, or give the upstream by hand with --source NAME=PATH.",
        )
    urls = [first]
    for more in (
        *(_uv_url(url) for url in env.get("UV_INDEX", "").split()),
        *env.get("UV_EXTRA_INDEX_URL", "").split(),
        *env.get("PIP_EXTRA_INDEX_URL", pip.get("extra-index-url", "")).split(),
    ):
        if _is_web(more) and more not in urls:
            urls.append(more)
    no_index = env.get("PIP_NO_INDEX", pip.get("no-index", ""))
    disabled = "no-index is set for pip" if no_index.lower() in {"1", "true", "yes", "on"} else None
    return IndexSettings(tuple(urls), _ca_file(pip), disabled)


def _is_web(url: str) -> bool:
    """Whether an address is one of http or https with a host, as far as can be said without asking."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and url.isprintable()
    except ValueError:
        return False


def _uv_url(text: str) -> str:
    """The address in `name=url` (as uv writes it) or in plain `url`."""
    name, equals, url = text.partition("=")
    return url if equals and name.replace("-", "").replace("_", "").replace(".", "").isalnum() else text


TIMEOUT = 30.0
LONGEST_TIMEOUT = 3600.0


def timeout_setting() -> float:
    """Seconds that an index has for an answer, from `AFD_PATCHKIT_TIMEOUT`, uv's and pip's settings, or 30.

    Raises:
        UpstreamError: it is no number of seconds (PK410).
    """
    named = [
        (name, os.environ.get(name, "")) for name in ("AFD_PATCHKIT_TIMEOUT", "UV_HTTP_TIMEOUT", "PIP_DEFAULT_TIMEOUT")
    ]
    for origin, text in (*named, ("timeout in pip's configuration", pip_config().get("timeout", ""))):
        if text.strip():
            try:
                seconds = float(text)
            except ValueError:
                seconds = 0.0
            if not 0 < seconds <= LONGEST_TIMEOUT:
                raise bad_setting(
                    f"the time-out {text[:60]!a} ({origin}) is no number of seconds up to {LONGEST_TIMEOUT:g}",
                    f"Correct or unset {origin}, or use --timeout.",
                )
            return seconds
    return TIMEOUT


def _ca_file(pip: Mapping[str, str]) -> str | None:
    env = os.environ
    for origin, path in (
        ("PIP_CERT", env.get("PIP_CERT")),
        ("cert in pip's configuration", pip.get("cert")),
        ("SSL_CERT_FILE", env.get("SSL_CERT_FILE")),
        ("REQUESTS_CA_BUNDLE", env.get("REQUESTS_CA_BUNDLE")),
        ("CURL_CA_BUNDLE", env.get("CURL_CA_BUNDLE")),
    ):
        if path:
            full = os.path.expanduser(path)
            if not os.path.exists(full):
                raise bad_setting(
                    f"the certificate bundle {full} ({origin}) does not exist", f"Correct or unset {origin}."
                )
            return full
    return None


def pip_config() -> dict[str, str]:
    """The `[global]` settings of pip's configuration files, as pip merges them.

    Raises:
        UpstreamError: one of them cannot be read (PK410); to go on could mean to ask the wrong index.
    """
    import configparser

    merged: dict[str, str] = {}
    for path in pip_config_files():
        parser = configparser.RawConfigParser()
        try:
            with open(path, encoding="utf-8") as file:
                parser.read_file(file)
        except FileNotFoundError:
            continue
        except PermissionError:
            continue
        except (OSError, UnicodeDecodeError, configparser.Error) as error:
            raise bad_setting(f"pip's configuration file {path} cannot be read: {error}", "Correct it.") from None
        if parser.has_section("global"):
            merged.update({key.replace("_", "-"): value for key, value in parser.items("global")})
    return merged


def pip_config_files() -> Iterator[Path]:
    """Where pip looks, weakest first: global, user, environment (venv), `PIP_CONFIG_FILE`."""
    override = os.environ.get("PIP_CONFIG_FILE")
    if override == os.devnull:
        return
    home = Path.home()
    if sys.platform == "win32":
        name = "pip.ini"
        yield Path(os.environ.get("PROGRAMDATA", "C:/ProgramData")) / "pip" / name
        yield home / "pip" / name
        yield Path(os.environ.get("APPDATA", home)) / "pip" / name
    else:
        name = "pip.conf"
        if sys.platform == "darwin":
            yield Path("/Library/Application Support/pip") / name
        else:
            for folder in reversed(os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep)):
                if folder:
                    yield Path(folder) / "pip" / name
            yield Path("/etc") / name
        yield home / ".pip" / name
        support = home / "Library/Application Support/pip"
        if sys.platform == "darwin" and support.is_dir():
            yield support / name
        else:
            yield Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / name
    yield Path(sys.prefix) / name
    if override:
        yield Path(override)
