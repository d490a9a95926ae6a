from __future__ import annotations

import io
import re
import sys

import pytest

from afd_patchkit.cli.progress import Bars, progress_for
from afd_patchkit.cli.session import Session


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_nothing_is_shown_for_quick_work(clock):
    stream = Terminal()
    bars = Bars(stream, color=False, clock=clock)
    bars.downloads.start(1000)
    bars.downloads.advance(1000)
    bars.downloads.done()
    bars.close()
    assert stream.getvalue() == ""


def test_bars_appear_after_a_second_and_go_away(clock):
    stream = Terminal()
    bars = Bars(stream, color=False, clock=clock)
    bars.work.start(80)
    clock.now += 1.5
    bars.work.advance(12)
    clock.now += 0.5
    bars.downloads.start(3_400_000)
    bars.downloads.advance(1_200_000)
    shown = stream.getvalue()
    assert "regenerating" in shown
    assert "12 / 80" in shown
    assert "downloading" in shown
    assert "1.2 MB / 3.4 MB" in shown or "0 B / 3.4 MB" in shown
    bars.downloads.done()
    bars.downloads.start(None)
    clock.now += 1
    bars.downloads.advance(5_000)
    assert "5.0 kB" in stream.getvalue()[len(shown) :]
    bars.close()
    assert stream.getvalue().endswith("\x1b[2K") or stream.getvalue().rstrip().endswith(
        "\x1b[?25h\x1b[1A\x1b[2K\x1b[1A\x1b[2K"
    )
    assert "\x1b[?25h" in stream.getvalue()  # the cursor is back
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", stream.getvalue())  # no colour


def test_what_is_waited_for_is_shown_until_it_comes(clock):
    stream = Terminal()
    bars = Bars(stream, color=False, clock=clock)
    clock.now += 1
    bars.waiting("https://a/[b] (try 2 of 4)")
    shown = stream.getvalue()
    assert "waiting for https://a/[b] (try 2 of 4)" in shown
    assert " 0" not in shown  # no amount and no time of what has none
    bars.arrived("https://a/[b] (try 2 of 4)")
    bars.arrived("something else")
    bars.work.start(3)
    assert "waiting" not in stream.getvalue()[len(shown) :]
    bars.close()


def test_drawing_is_rare(clock):
    stream = Terminal()
    bars = Bars(stream, color=False, clock=clock)
    clock.now += 2
    bars.work.start(100_000)
    size = len(stream.getvalue())
    for _ in range(10_000):
        bars.work.advance()
    assert len(stream.getvalue()) - size < 1000
    bars.close()


@pytest.mark.parametrize(
    ("stream", "verbosity", "shown"), [(Terminal(), 0, True), (Terminal(), -1, False), (io.StringIO(), 0, False)]
)
def test_bars_only_for_people(monkeypatch, stream, verbosity, shown):
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_for(Session(verbosity=verbosity)) as bars:
        assert (bars is not None) is shown
