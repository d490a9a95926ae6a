from __future__ import annotations

import importlib
import linecache

import pytest

from tests.runtime.world import Scene, forget


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    importlib.invalidate_caches()
    forget()
    yield Scene(tmp_path)
    forget()
    linecache.clearcache()
