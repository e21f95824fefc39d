"""Progress bars on a terminal (tqdm); silent anywhere else."""

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self

from stream_engine.service import logs

if TYPE_CHECKING:
    from tqdm import tqdm


class Bars:
    """One bar for reading, then one for each running refit."""

    def __init__(self, stream=None):
        self._stream = stream or sys.stderr
        self._on = self._stream.isatty()
        self._bars: dict[str, tqdm] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error) -> None:
        for bar in self._bars.values():
            bar.close()
        logs.OUTPUT.around = nullcontext

    def _bar(self, name: str, **more) -> "tqdm":
        if name not in self._bars:
            from tqdm import tqdm

            if self._on:  # a line of the log is written where the bars are, and these below it again
                logs.OUTPUT.around = lambda: tqdm.external_write_mode(file=self._stream)
            self._bars[name] = tqdm(desc=name, file=self._stream, disable=not self._on, dynamic_ncols=True, **more)
        return self._bars[name]

    def taken(self, comparisons: int) -> None:
        """Show the number of comparisons read so far."""
        bar = self._bar("comparisons", unit="", unit_scale=True)
        bar.update(comparisons - bar.n)

    def sent(self, events: int) -> None:
        """Add to the number of events sent."""
        self._bar("events sent", unit="", unit_scale=True).update(events)

    def refits(self, running: dict[str, dict[str, Any]]) -> None:
        """Show the progress of each running refit."""
        for kind, told in running.items():
            figures = {name: value for name, value in told.items() if name not in ("done", "total")}
            self.show(kind, told.get("done", 0), told.get("total", 1), figures)

    def show(self, name: str, done: float, total: float, figures: dict[str, Any]) -> None:
        """Show the progress of one task."""
        bar = self._bar(name, total=total)
        bar.total = total
        bar.set_postfix({k: f"{v:.3g}" if isinstance(v, float) else v for k, v in figures.items()}, refresh=False)
        bar.update(done - bar.n)
