"""A progress bar on a terminal, nothing in a pipe."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

__all__ = ["Progress", "progress"]


_shown: Final = Lock()  # a terminal has room for one


class Progress:
    """Tells how far a piece of work has come; this one stays silent."""

    def step(self, description: str) -> None:
        """Say what is being done now, and count the step before it as done."""


@contextmanager
def progress(total: int, *, enabled: bool | None = None) -> Iterator[Progress]:
    """Show a progress bar on standard error while the block runs; one inside another shows nothing.

    Parameters
    ----------
    total : int
        Number of steps.
    enabled : bool, optional
        Default: only where standard error is a terminal.
    """
    if not (sys.stderr.isatty() if enabled is None else enabled) or not _shown.acquire(blocking=False):
        yield Progress()
        return
    try:
        with _bar(total) as bar:
            yield bar
    finally:
        _shown.release()


@contextmanager
def _bar(total: int) -> Iterator[Progress]:
    from rich import progress as bars
    from rich.console import Console
    from rich.text import Text

    columns = (bars.SpinnerColumn(), bars.BarColumn(), bars.MofNCompleteColumn(), bars.TimeElapsedColumn())
    description = bars.RenderableColumn()
    with bars.Progress(*columns, description, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("", total=total)

        class _Shown(Progress):
            started = False

            def step(self, text: str) -> None:
                description.renderable = Text(text)
                display.update(task, advance=int(self.started))
                self.started = True

        yield _Shown()
