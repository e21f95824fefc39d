"""How the cost of a comparison grows with the number of comparisons m and of objects n; draws growth.png."""

import time
from pathlib import Path

import numpy as np

from stream_engine.data.comparisons import Batch
from stream_engine.state.engine import Engine
from tests.support.generators import planted_triplets

FIGURE = Path(__file__).parent / "growth.png"
BLOCK = 100_000


def cost(n: int, size: int) -> dict[str, list[float]]:
    """CPU microseconds a comparison for each block of a stream, by room."""
    rng = np.random.default_rng(0)
    points, engine = rng.normal(size=(n, 5)), Engine()
    rooms = {**engine.accumulators, "guard": engine.guard}
    found: dict[str, list[float]] = {name: [] for name in rooms}
    nothing = np.empty((0, 4), np.int32), np.empty(0, np.int64)
    for _ in range(size // BLOCK):
        batch = Batch(planted_triplets(rng, points, BLOCK, 0.1), *nothing, n)
        for name, room in rooms.items():
            began = time.process_time()
            room.offer(batch) if name == "guard" else room.update(batch)
            found[name].append((time.process_time() - began) / BLOCK * 1e6)
    return found


def rows(quick: bool) -> list[dict]:
    """Cost at the start and at the end of the longest stream, and over n."""
    cost(20, BLOCK)  # compile
    sizes = (100, 300, 1_000, 3_000) if quick else (100, 300, 1_000, 3_000, 10_000)
    length = 1_000_000 if quick else 5_000_000
    by_n = {n: cost(n, length) for n in sizes}
    made = [
        {
            "stage": "growth",
            "case": f"{room}, n = {n:,}, m = {length:,}: last tenth beside first",
            "ours": float(np.mean(c[-max(1, len(c) // 10) :])),
            "rival": float(np.mean(c[: max(1, len(c) // 10)])),
            "rival_name": "first tenth",
            "unit": "us/comparison",
            "ratio": float(np.mean(c[-max(1, len(c) // 10) :]) / np.mean(c[: max(1, len(c) // 10)])),
        }
        for n, rooms in by_n.items()
        for room, c in rooms.items()
    ]
    draw(by_n)
    return made


def draw(by_n: dict[int, dict[str, list[float]]]) -> None:
    """Curves in m (one per n) and in n (whole streams), one panel a room."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rooms = list(next(iter(by_n.values())))
    figure, axes = plt.subplots(2, len(rooms), figsize=(4 * len(rooms), 7), layout="constrained")
    for column, room in enumerate(rooms):
        for n, found in by_n.items():
            axes[0, column].plot(np.arange(1, len(found[room]) + 1) * BLOCK, found[room], label=f"n = {n:,}")
        axes[1, column].plot(list(by_n), [np.mean(found[room]) for found in by_n.values()], marker="o")
        axes[0, column].set(title=room, xlabel="comparisons m", ylabel="µs a comparison", ylim=(0, None))
        axes[1, column].set(xlabel="objects n", ylabel="µs a comparison, mean", xscale="log", ylim=(0, None))
    axes[0, 0].legend()
    figure.savefig(FIGURE, dpi=100)
    plt.close(figure)
