"""Progress on a terminal, for work that takes longer than a second; silent in pipes and logs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from afd_patchkit.cli.session import is_terminal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from afd_patchkit.cli.session import Session

PATIENCE = 1.0
"""Seconds of work before anything is shown."""
_INTERVAL = 0.1


class Bars:
    """The bars of one run, drawn from the thread that works: no thread of their own, so that workers may be forked.

    Attributes:
        downloads: to be told about bytes that arrive.
        work: to be told about modules that are done.

    `waiting` and `arrived` may be called by other threads than that one, while it waits for them.
    """

    def __init__(self, stream: IO[str], *, color: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.downloads = Bar(self, "downloading", in_bytes=True)
        self.work = Bar(self, "regenerating", in_bytes=False)
        self._stream = stream
        self._color = color
        self._clock = clock
        self._begun = clock()
        self._drawn = 0.0
        self._display: Progress | None = None
        self._lock = threading.Lock()
        self._awaited: dict[str, TaskID] = {}

    def display(self) -> Progress | None:
        """The display, once the run has taken long enough to have one."""
        with self._lock:
            if self._display is None and self._clock() - self._begun >= PATIENCE:
                self._display = _display(self._stream, self._color)
                self._display.start()
            return self._display

    def waiting(self, what: str) -> None:
        """Show that `what` is waited for."""
        display = self.display()
        if display is not None:
            with self._lock:
                self._awaited[what] = display.add_task(f"waiting for {_escaped(what)}", total=None, in_bytes=None)
            display.refresh()

    def arrived(self, what: str) -> None:
        """It is not waited for any more."""
        with self._lock:
            display, task = self._display, self._awaited.pop(what, None)
        if display is not None and task is not None:
            display.remove_task(task)
            display.refresh()

    def draw(self) -> None:
        """Draw, but not more often than an eye follows."""
        now = self._clock()
        if self._display is not None and now - self._drawn >= _INTERVAL:
            self._drawn = now
            self._display.refresh()

    def close(self) -> None:
        """Remove the bars from the terminal."""
        if self._display is not None:
            self._display.stop()
            self._display = None


class Bar:
    """One kind of work: `start` begins a new piece, `advance` moves it, `done` ends it."""

    def __init__(self, bars: Bars, label: str, *, in_bytes: bool) -> None:
        self._bars = bars
        self._label = label
        self._in_bytes = in_bytes
        self._total: int | None = None
        self._done = 0
        self._task: TaskID | None = None

    def start(self, total: int | None) -> None:
        """A piece of `total` bytes or steps begins (None: nobody knows how many)."""
        self.done()
        self._total, self._done = total, 0
        self._show()

    def advance(self, n: int = 1) -> None:
        """Count `n` more modules as done."""
        self._done += n
        self._show()

    def done(self) -> None:
        """The piece has ended, well or not."""
        display = self._bars._display
        if self._task is not None and display is not None:
            display.remove_task(self._task)
            display.refresh()
        self._task = None

    def _show(self) -> None:
        display = self._bars.display()
        if display is None:
            return
        if self._task is None:
            self._task = display.add_task(self._label, total=self._total, in_bytes=self._in_bytes)
        display.update(self._task, completed=self._done)
        self._bars.draw()


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _display(stream: IO[str], color: bool) -> Progress:
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
    from rich.text import Text

    from afd_patchkit.reports.layout import human_bytes

    class Amount(ProgressColumn):
        """`1.2 MB / 3.4 MB` or `12 / 80`."""

        def render(self, task: Task) -> Text:
            """What is done, of what there is."""
            show: Callable[[int], str] = human_bytes if task.fields["in_bytes"] else str
            total = f" / {show(int(task.total))}" if task.total is not None else ""
            return Text(show(int(task.completed)) + total)

    class WithPieces(ProgressColumn):
        """Another column, for work that has pieces; what is only waited for has none."""

        def __init__(self, column: ProgressColumn) -> None:
            super().__init__(column.get_table_column())
            self._column = column

        def render(self, task: Task) -> RenderableType:
            """What the column says, or nothing."""
            return self._column(task) if task.fields["in_bytes"] is not None else Text()

    console = Console(file=stream, no_color=not color, force_terminal=True, legacy_windows=False)
    columns = [WithPieces(column) for column in (BarColumn(None), Amount(), TimeRemainingColumn(compact=True))]
    return Progress("{task.description}", *columns, console=console, transient=True, auto_refresh=False, expand=True)


@contextmanager
def progress_for(session: Session) -> Iterator[Bars | None]:
    """Bars on standard error when a person sees it, None otherwise; they are gone when the block is left."""
    if session.verbosity < 0 or not is_terminal(sys.stderr):
        yield None
        return
    bars = Bars(sys.stderr, color=session.wants_color(sys.stderr))
    try:
        yield bars
    finally:
        bars.close()
