"""When a tenth of the objects move: how late each detector notices, against how often it cries wolf.

    python -m tests.benchmarks.planted_drift [--out DIR] [--seeds N] [--blocks B]

A food-like world (100 objects in five dimensions, 15 % of the answers wrong), learned as the engine learns it: AddS-3
and the counts of the last snapshot predict a sample of each block of 10,000, a snapshot comes every 250,000. Four
streams a seed: `stationary` (a million from the first comparison on: what is learned gets better all the time),
`growing` (the same, objects appear one after the other), `moved` (half a million, then a tenth of the objects are
elsewhere), `moved little` (a twentieth). The signals are drawn once; every detector of river that takes them sees the
same ones. A detector that notices again within 100,000 comparisons of an alarm tells it at their end, once. Writes
planted_drift.md and planted_drift.png.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stream_engine.data.comparisons import Decoded
from stream_engine.prediction.drift import SIGNALS, Worsening
from stream_engine.prediction.observer import Observer, signals
from stream_engine.state.engine import Engine
from tests.support.generators import as_batch, planted_triplets

OBJECTS, NOISE, BLOCK, EVERY, COOLDOWN = 100, 0.15, 10_000, 250_000, 100_000


class Stream(NamedTuple):
    """Wrong (1) or right (0), and after how many comparisons, for each signal; the change comes at `change`."""

    wrong: dict[str, tuple[np.ndarray, np.ndarray]]
    size: int
    change: int | None


def stream(seed: int, kind: str, blocks: int = 100) -> Stream:
    """The signals of one stream, as the observer of a run makes them."""
    rng = np.random.default_rng([seed, 7])
    points = rng.normal(size=(OBJECTS, 5))
    engine, observer = Engine(("adds3", "triplet_counts"), False), Observer(None)
    names, found = [str(i) for i in range(OBJECTS)], {signal: ([], []) for signal in SIGNALS}
    change = blocks // 2 if kind.startswith("moved") else None
    for block in range(blocks):
        if block == change:
            moving = rng.choice(OBJECTS, OBJECTS // (10 if kind == "moved" else 20), replace=False)
            points = points.copy()
            points[moving] = rng.normal(size=(len(moving), 5))
        there = min(OBJECTS, 30 + 70 * block // max(1, blocks * 3 // 4)) if kind == "growing" else OBJECTS
        triplets = planted_triplets(rng, points[:there], BLOCK, NOISE)
        rows, _ = observer._drawn(as_batch(triplets, OBJECTS))
        observer.seen += len(triplets)
        margins = {name: made.margins(rows) for name, made in observer.predictors.items()}
        for signal, wrong in signals(margins, len(rows)).items():
            at = block * BLOCK + (np.arange(len(rows)) + 1) * BLOCK // len(rows)
            decided = ~np.isnan(wrong)
            found[signal][0].append(wrong[decided])
            found[signal][1].append(at[decided])
        engine.learn(Decoded(names, triplets, np.empty((0, 4), np.int32), np.empty(0, np.int64), [], {}, []))
        if (block + 1) * BLOCK % EVERY == 0 or block == 1:
            observer.serve(engine.snapshot())
    joined = {signal: tuple(np.concatenate(part) for part in parts) for signal, parts in found.items()}
    return Stream(joined, blocks * BLOCK, None if change is None else change * BLOCK)


class _River:
    """Any detector of river, value by value: two-sided unless it is one-sided by itself."""

    def __init__(self, detector):
        self._detector = detector

    def update(self, values: list[float]) -> bool:
        self._detector.update(int(values[0]))
        return bool(self._detector.drift_detected)


def detectors() -> dict[tuple[str, str], Callable]:
    """(detector, setting) -> a fresh one."""
    from river import drift
    from river.drift import binary

    made: dict[tuple[str, str], Callable] = {}
    for delta in (0.2, 0.05, 0.01, 0.002, 1e-4, 1e-6):
        made["ADWIN, worsening only", f"delta {delta:g}"] = lambda d=delta: Worsening(d)
    for delta in (0.05, 0.002, 1e-4):
        made["ADWIN", f"delta {delta:g}"] = lambda d=delta: _River(drift.ADWIN(delta=d))
    for threshold in (10, 25, 50, 100):
        made["Page-Hinkley, up", f"threshold {threshold}"] = lambda t=threshold: _River(
            drift.PageHinkley(mode="up", delta=0.02, threshold=t, alpha=1.0)
        )
    for sigmas in (3.0, 4.0, 5.0):
        made["DDM", f"{sigmas:g} sigma"] = lambda s=sigmas: _River(binary.DDM(drift_threshold=s, warm_start=300))
    for confidence in (1e-3, 1e-5, 1e-8):
        made["HDDM-A, one-sided", f"confidence {confidence:g}"] = lambda c=confidence: _River(
            binary.HDDMA(drift_confidence=c)
        )
        made["HDDM-W, one-sided", f"confidence {confidence:g}"] = lambda c=confidence: _River(
            binary.HDDMW(drift_confidence=c, lambda_val=0.01)
        )
    for alpha in (1e-4, 1e-6):
        made["KSWIN", f"alpha {alpha:g}"] = lambda a=alpha: _River(
            drift.KSWIN(alpha=a, window_size=600, stat_size=200, seed=0)
        )
    return made


def noticed(detector, wrong: np.ndarray, at: np.ndarray) -> list[int]:
    """Where a detector notices something."""
    return [place for value, place in zip(wrong.tolist(), at.tolist()) if detector.update([value])]


def told(places: list[int], cooldown: int = COOLDOWN) -> int:
    """How many alarms that makes: what is noticed during the cooldown of an alarm is told once, when that is over."""
    number, until, waiting = 0, 0, False
    for place in places:
        if waiting and place >= until:
            number, until, waiting = number + 1, until + cooldown, False
        if place >= until:
            number, until = number + 1, place + cooldown
        else:
            waiting = True
    return number + waiting


def row(make: Callable, streams: dict[str, list[Stream]], signal: str) -> dict[str, float | None]:
    """False alarms a million, median delay and share missed, of one detector on one signal."""
    said = {kind: [(noticed(make(), *each.wrong[signal]), each) for each in of] for kind, of in streams.items()}
    out: dict[str, float | None] = {}
    for kind in ("stationary", "growing"):
        out[kind] = sum(told(found) for found, _ in said[kind]) / sum(each.size for _, each in said[kind]) * 1e6
    for kind in ("moved", "moved little"):
        delays = [next((at - each.change for at in found if at > each.change), None) for found, each in said[kind]]
        known = [d for d in delays if d is not None]
        out[kind] = float(np.median(known)) if known else None
        out[f"{kind}, worst"] = float(max(known)) if known else None
        out[f"{kind}, missed"] = 1 - len(known) / len(delays)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="planted-drift")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--blocks", type=int, default=100)
    parser.add_argument("--kswin-seeds", type=int, default=1, help="a thousand times the cost of ADWIN: fewer streams")
    given = parser.parse_args()
    streams = {
        kind: [stream(seed, kind, given.blocks) for seed in range(given.seeds)]
        for kind in ("stationary", "growing", "moved", "moved little")
    }
    lines = [
        "| signal | detector | setting | false alarms a million: stationary | growing "
        "| a tenth moves: delay (median, worst, missed) | a twentieth moves |",
        "|---|---|---|---|---|---|---|",
    ]
    points = []
    for signal in SIGNALS:
        for (name, setting), make in detectors().items():
            if name == "KSWIN" and not given.kswin_seeds:
                continue
            used = {k: s[: given.kswin_seeds] for k, s in streams.items()} if name == "KSWIN" else streams
            found = row(make, used, signal)
            points.append((signal, name, setting, found))
            cells = [f"{found[kind]:.1f}" for kind in ("stationary", "growing")]
            for kind in ("moved", "moved little"):
                cells.append(
                    "never"
                    if found[kind] is None
                    else f"{found[kind]:,.0f}, {found[kind + ', worst']:,.0f}, {found[kind + ', missed']:.0%}"
                )
            lines.append(f"| {signal} | {name} | {setting} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "planted_drift.md").write_text(
        f"{given.seeds} seeds, {given.blocks * BLOCK:,} comparisons a stream, {OBJECTS} objects, {NOISE:.0%} noise; "
        f"KSWIN on {given.kswin_seeds} seed(s). A delay counts comparisons of the stream, of which one in "
        f"{BLOCK // 256} is sampled.\n\n" + "\n".join(lines) + "\n"
    )
    draw(points, out / "planted_drift.png")


def draw(points, path: Path) -> None:
    """Delay against false alarms, a panel a signal."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(13, 5.5), layout="constrained", sharey=True)
    for panel, signal in zip(axes, SIGNALS):
        names = dict.fromkeys(name for s, name, _, _ in points if s == signal)
        for name in names:
            of = [f for s, n, _, f in points if s == signal and n == name and f["moved"] is not None]
            panel.plot([f["stationary"] for f in of], [f["moved"] for f in of], "o-", label=name)
        panel.set_xscale("symlog", linthresh=0.2)
        panel.set_yscale("log")
        panel.set_xlabel("false alarms in a million comparisons, nothing changes")
        panel.set_title(f"signal: {signal}")
    axes[0].set_ylabel("comparisons until noticed (median), a tenth of the objects move")
    axes[1].legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
