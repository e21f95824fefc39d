"""Workers: how well each agrees with the others. Only where somebody asked for it."""

import numpy as np

from stream_engine.data.packed_names import unpack_names
from stream_engine.exports import NothingToExport
from stream_engine.exports.in_words import GUESSING
from stream_engine.exports.workers import workers
from stream_engine.report import Section, Table
from stream_engine.report.drawings import Axis, Bars, Drawing
from stream_engine.report.material import Material
from stream_engine.report.words import listed, some

LAPSE = (
    "Lapse rate: the share of somebody's answers that come as a coin's would, whatever is asked, as the embedding "
    "estimates it; 0: never, 1: always."
)


def section(material: Material) -> Section | None:
    """A row a worker; None unless workers are asked for."""
    if not material.workers:
        return None
    artifact = material.artifact("embedding")
    lapse = names = None
    if artifact is not None and len(artifact.arrays.get("worker_lapse", ())):
        names = unpack_names(artifact.arrays["utf8"], artifact.arrays["offsets"])
        lapse = np.asarray(artifact.arrays["worker_lapse"], float)
    columns: dict = {}
    try:
        columns = dict(workers(material.published)["workers"].tables["workers"])
    except NothingToExport:
        if names is None:
            return Section("Workers", "No answer says who gave it, so nothing is known about workers.")
        columns = {"worker": list(names)}
    if lapse is not None and names is not None:
        of = dict(zip(names, lapse.tolist()))
        columns["lapse rate"] = [of.get(worker) for worker in columns["worker"]]
    known = [
        (value, name) for name, value in zip(columns["worker"], columns.get("lapse rate", [])) if value is not None
    ]
    guessing = [name for value, name in sorted(known, reverse=True) if value > GUESSING]
    says = f"{some(len(columns['worker']), 'worker')} answered."
    about = LAPSE if "lapse rate" in columns else ""
    if known:
        says += (
            f" {some(len(guessing), 'worker seems', 'workers seem')} to guess more than half of the time: "
            f"{listed(guessing)}."
            if guessing
            else " Nobody seems to guess more than half of the time."
        )
    plain = {head: [_plain(value) for value in values] for head, values in columns.items()}
    drawings = (_lapses(np.array(sorted((value for value, _ in known), reverse=True))),) if len(known) > 1 else ()
    return Section("Workers", says, drawings, (Table("workers", plain, about=about),))


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def _lapses(lapse: np.ndarray) -> Drawing:
    return Drawing(
        "workers",
        "Lapse rates of workers",
        f"One bar a worker, the highest lapse rate first; from {lapse.min():.2f} to {lapse.max():.2f}.",
        Axis("workers in order", ticks=()),
        Axis("lapse rate", low=0.0, high=1.0),
        (Bars(np.arange(len(lapse), dtype=float), lapse, lapse > GUESSING),),
        height=260,
    )
