"""Progress bars on a terminal or in a notebook (tqdm); silent anywhere else."""

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self

from stream_engine.data.logs import OUTPUT
from stream_engine.data.standard_streams import TerminalCommands

if TYPE_CHECKING:
    from tqdm import tqdm


class Bars:
    """One bar for reading, then one for each running refit, on a terminal or in a notebook; each is shown once it has
    lasted `delay` seconds."""

    def __init__(self, stream=None, delay: float = 0.0):
        self._stream, self._delay = TerminalCommands(stream or sys.stderr), delay
        self._on = self._stream.isatty() or "ipykernel" in sys.modules
        self._bars: dict[str, tqdm] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error) -> None:
        for bar in self._bars.values():
            bar.close()
        OUTPUT.around = nullcontext

    def _bar(self, name: str, **options) -> "tqdm":
        if name not in self._bars:
            from tqdm import tqdm

            if self._on:  # a line of the log is written where the bars are, and these below it again
                OUTPUT.around = lambda: tqdm.external_write_mode(file=self._stream)
            options |= {"file": self._stream, "disable": not self._on, "delay": self._delay, "dynamic_ncols": True}
            self._bars[name] = tqdm(desc=name, **options)
        return self._bars[name]

    def show_comparisons(self, comparisons: int) -> None:
        """Show the number of comparisons read so far."""
        bar = self._bar("comparisons", unit="", unit_scale=True)
        bar.update(comparisons - bar.n)

    def add_sent(self, events: int) -> None:
        """Add to the number of events sent."""
        self._bar("events sent", unit="", unit_scale=True).update(events)

    def refits(self, running: dict[str, dict[str, Any]]) -> None:
        """Show the progress of each running refit."""
        for kind, report in running.items():
            figures = {name: value for name, value in report.items() if name not in ("done", "total")}
            self.show(kind, report.get("done", 0), report.get("total", 1), figures)

    def show(self, name: str, n_done: float, total: float, figures: dict[str, Any]) -> None:
        """Show the progress of one task."""
        bar = self._bar(name, total=total)
        bar.total = total
        bar.set_postfix({k: f"{v:.3g}" if isinstance(v, float) else v for k, v in figures.items()}, refresh=False)
        bar.update(n_done - bar.n)
