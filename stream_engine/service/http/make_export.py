"""The files of one export of a published snapshot, made in a process of its own, so that the run's interpreter stays
free and the memory is given back: `python -m` this module STATE N WHAT FORMAT DIR BYTES QUICK."""

import sys
from pathlib import Path

from stream_engine import exports
from stream_engine.data.available_memory import TooLarge, give, resident
from stream_engine.exports import files
from stream_engine.state.published import Published
from stream_engine.state.store import NoSuchSnapshot, Store

PAGE, FIGURES = "page", "figures"  # parts of the report for the live page, made like exports
FORMATS_OF_PAGES = ("plain", "workers")  # the second shows workers one by one
RAW = "+raw"  # at the end of a format: texts in CSV are written as they are
NOTHING_STATUS, PRUNED_STATUS, NO_ROOM_STATUS = (
    10,
    11,
    12,
)  # nothing to export; the snapshot was pruned meanwhile; no memory or disk for it


def write_files(published: Published, export: str, format: str, folder: Path) -> None:
    """Write the files of an export into a folder. Raises `NothingToExport`, `TooLarge`, `OSError`, `MemoryError`."""
    kind, raw = format.removesuffix(RAW), format.endswith(RAW)
    for name, content in exports.contents(export, published).items():
        for file, write in files.writers(name, content, kind, published.snapshot.objects, raw).items():
            with (folder / file).open("wb") as output:
                write(output)


def write_page(published: Published, progressive: dict, part: str, format: str, folder: Path, state: str) -> None:
    """Write a part of the report into a folder: `page.html`, or its figures as SVG and PDF."""
    from stream_engine.report import writing  # it loads scipy, matplotlib and the templates
    from stream_engine.report.findings.facts import Commands

    workers = format == FORMATS_OF_PAGES[1]
    commands = Commands(state, in_use=True)  # by the run that serves the page
    if part == PAGE:
        writing.write_body(published, folder, progressive, workers, commands)
    else:
        writing.write_figures(published, folder, progressive, workers)


def main(
    state: str, sequence: str, export: str, format: str, folder: str, memory: str = "", first_map: str = ""
) -> int:
    """Read the snapshot, which stays mapped, and write the files; returns the exit status. `memory`: how many bytes it
    may take for it, "" for what there is; `first_map`: "quick" if the embedding is being fitted."""
    give(resident() + int(memory) if memory else None)
    try:
        store = Store(state)
        published = store.published(sequence)
        if export in (PAGE, FIGURES):
            if first_map:
                from stream_engine.refits.quick_map import with_quick_map

                published = with_quick_map(published)
            write_page(published, store.noted("progressive"), export, format, Path(folder), state)
        else:
            write_files(published, export, format, Path(folder))
        return 0
    except exports.NothingToExport as error:
        problem, status = str(error), NOTHING_STATUS
    except NoSuchSnapshot as error:
        problem, status = str(error), PRUNED_STATUS
    except (TooLarge, MemoryError, OSError) as error:
        problem, status = str(error) or "out of memory", NO_ROOM_STATUS
    print(" ".join(problem.split()))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
