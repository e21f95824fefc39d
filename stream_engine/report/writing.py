"""A report of a state as files: the page, and where it is wanted the figures beside it."""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from connectors.disk import Disk, write_whole
from stream_engine.report import CannotWrite, Section, object_files, page
from stream_engine.report.figure_files import FORMATS, NO_PICTURES, encoded
from stream_engine.report.figure_style import ONE_COLUMN, FigureStyle
from stream_engine.report.findings.facts import DEFAULT_COMMANDS, Commands
from stream_engine.report.material import material
from stream_engine.state.published import Published

MAX_OBJECTS_WITH_PDF = 1000  # on a page that holds its figures as PDF; `--figures` writes those of more


class Report(NamedTuple):
    """What was written, and what a person should know of it."""

    page: Path
    size: int  # bytes
    figures: list[Path]
    notes: tuple[str, ...] = ()


def write(
    published: Published,
    out: Path,
    progressive: dict[str, Any] | None = None,
    figures: Path | None = None,
    workers: bool = False,
    objects: Path | None = None,
    commands: Commands = DEFAULT_COMMANDS,
    style: FigureStyle = ONE_COLUMN,
    running: Sequence[str] = (),
) -> Report:
    """Write the page to `out`, and its figures as SVG, PDF and PNG into the folder `figures`. `running` refits: the
    page says that it will be written again, and is loaded anew by itself.

    Raises `object_files.BadObjects`, `CannotWrite`."""
    read = material(published, progressive, workers, commands)
    files = object_files.ObjectFiles({}, {}, 0)
    if objects is not None:
        files = object_files.read(objects, {read.names[i] for i in read.shown.tolist()})
    sections = page.sections(read)
    formats = FORMATS if figures else ("pdf",) if len(read.names) <= MAX_OBJECTS_WITH_PDF and not running else ()
    figure_files = files_of(sections, formats, style, files.pictures)
    pdf_links = _data_links(figure_files) if len(read.names) <= MAX_OBJECTS_WITH_PDF else {}
    written = page.html(read, sections, files.pictures, files.texts, pdf_links, running).encode()
    _write(out, written)
    beside = [] if figures is None else _write_into(figures, figure_files)
    notes = []
    if files.unknown:
        notes.append(f"{files.unknown} of {objects} name objects that are not in the state")
    if files.too_many:
        notes.append(
            f"{files.too_many:,} pictures were excluded: a page holds {object_files.MAX_PAGE_BYTES // 10**6} MB of them"
        )
    return Report(out, len(written), beside, tuple(notes))


def write_body(
    published: Published, folder: Path, progressive: dict[str, Any], workers: bool, commands: Commands
) -> None:
    """Write `page.html`, what a page that is there already is filled with; figures are links to figures/NAME.pdf."""
    read = material(published, progressive, workers, commands)
    sections = page.sections(read)
    pdf_links = {
        drawing.name: f"figures/{drawing.name}.pdf" for section in sections.values() for drawing in section.drawings
    }
    (folder / "page.html").write_text(page.body(read, sections, pdf_links), encoding="utf-8")


def write_figures(published: Published, folder: Path, progressive: dict[str, Any], workers: bool) -> None:
    """Write the figures as SVG, PDF and PNG."""
    for name, content in files_of(page.sections(material(published, progressive, workers)), FORMATS).items():
        (folder / name).write_bytes(content)


def files_of(
    sections: Mapping[str, Section],
    formats: Sequence[str],
    style: FigureStyle = ONE_COLUMN,
    pictures: Mapping[str, bytes] = NO_PICTURES,
) -> dict[str, bytes]:
    """All figures as files: name -> bytes."""
    drawings = [drawing for section in sections.values() for drawing in section.drawings] if formats else []
    return {
        f"{drawing.name}.{format}": content
        for drawing in drawings
        for format, content in encoded(drawing, formats, style, pictures).items()
    }


def _write(path: Path, content: bytes) -> None:
    try:
        write_whole(Disk(), path, [content])
    except OSError as error:
        raise CannotWrite(f"{path}: cannot write ({error.strerror})") from None


def _write_into(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(f"{folder}: cannot write the figures ({error.strerror})") from None
    for name, content in contents.items():
        _write(folder / name, content)
    return [folder / name for name in contents]


def _data_links(files: Mapping[str, bytes]) -> dict[str, str]:
    """The PDFs in data: URLs, by figure, so that a page that stands alone has them to take along."""
    pdfs = {name.removesuffix(".pdf"): content for name, content in files.items() if name.endswith(".pdf")}
    return {name: f"data:application/pdf;base64,{base64.b64encode(content).decode()}" for name, content in pdfs.items()}
