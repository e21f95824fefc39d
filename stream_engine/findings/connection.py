"""Whether all objects were compared with each other, directly or through others: see `evaluation.connection`."""

from collections.abc import Iterator

import numpy as np

from stream_engine.findings import WARNING, Finding
from stream_engine.findings.facts import Facts
from stream_engine.findings.words import count, listed, some


def connected(facts: Facts) -> Iterator[Finding]:
    """A warning where the objects fall into sets that were never compared with each other."""
    if not facts.summary["comparisons"]:
        return
    found = facts.sets
    if found is None:
        return
    sizes = np.bincount(found[found >= 0])
    if len(sizes) > 1:
        names = facts.published.snapshot.objects
        small = [names[i] for i in np.flatnonzero(found == len(sizes) - 1).tolist()]
        each = listed([count(n) for n in sizes.tolist()])
        text = (
            f"The objects fall into {len(sizes)} sets that were never compared with each other ({each} objects; the "
            f"smallest: {listed(small, 3)}). Distances between sets are meaningless: exclude one, or ask questions "
            "that span them."
        )
        yield Finding("disconnected", text, {"sets": len(sizes), "sizes": sizes.tolist()}, level=WARNING)
    if never := int((found < 0).sum()):
        yield Finding(
            "never_compared",
            f"{some(never, 'object has', 'objects have')} no comparison.",
            {"objects": never},
            level=WARNING,
        )
