"""The rooms of the house from the ground up, and the modules in them."""

from pathlib import Path

# From the ground up. A file may import rooms of lower floors, and other files of its own room.
FLOORS = [
    ["stream_engine.data"],
    ["connectors", "stream_engine.counts", "stream_engine.order"],
    ["stream_engine.formats", "stream_engine.state"],
    ["stream_engine.evaluation"],
    ["stream_engine.asking", "stream_engine.embedding", "stream_engine.boosting", "stream_engine.kernel_learning"],
    ["stream_engine.clustering"],
    ["stream_engine.exports", "stream_engine.alignment"],
    ["stream_engine.refits", "stream_engine.report"],
    ["stream_engine.input"],
    ["stream_engine.service", "stream_engine.spark", "stream_engine.api"],
    ["stream_engine.collect"],
    ["stream_engine.commands", "stream_engine.testing"],
    ["stream_engine"],  # its loose modules: the command line and the public names
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def modules(root: Path) -> dict[str, Path]:
    """Every module of the product by its dotted name."""
    found = {}
    for top in ("connectors", "stream_engine"):
        for path in sorted((root / top).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str) -> str:
    """The room of a module: a folder of stream_engine, all of connectors, or the loose modules of stream_engine."""
    parts = module.split(".")
    if parts[0] == "connectors":
        return "connectors"
    room = ".".join(parts[:2])
    return room if room in FLOOR else "stream_engine"
