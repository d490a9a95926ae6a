"""A progress bar on a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(total: int, label: str) -> Iterator[Callable[[], None]]:
    """A bar on a terminal; call what is yielded for each step."""
    from rich import progress as bars
    from rich.console import Console

    columns = [
        bars.TextColumn(label),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    ]
    console = Console(stderr=True)
    with bars.Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)
