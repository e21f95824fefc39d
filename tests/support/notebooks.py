"""Notebooks of the manual, run as Jupyter runs them: cells in order in one namespace, what a cell shows kept beside it.

`python -m tests.support.notebooks` runs those of the gallery and stores what they show. Format: nbformat 4.5.
"""

import argparse
import ast
import base64
import contextlib
import io
import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GALLERY = Path(__file__).parents[2] / "stream_engine" / "docs" / "gallery"
DOTS = 60  # an inch, of a picture that is stored


class CellFailed(RuntimeError):
    """A cell raised; the message says which, and begins with its first line."""


def code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells that run."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(notebook: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Run the cells in the folder where we are; what each shows. Raises `CellFailed`."""
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    pyplot.close("all")  # figures that others left open are not the notebook's
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code(notebook), 1):
        source = "".join(cell["source"])
        try:
            yield _outputs(source, number, names)
        except Exception as error:
            raise CellFailed(f"cell {number} ({source.splitlines()[0]}): {type(error).__name__}: {error}") from error


def _outputs(source: str, number: int, names: dict[str, Any]) -> list[dict[str, Any]]:
    tree, said, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(said):
        exec(compile(tree, f"<cell {number}>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"<cell {number}>", "eval"), names)
    shown = [{"output_type": "stream", "name": "stdout", "text": _lines(said.getvalue())}] if said.getvalue() else []
    if value is not None and not source.rstrip().endswith(";"):
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        shown.append({"output_type": "execute_result", "execution_count": number, "data": data, "metadata": {}})
    return shown + [{"output_type": "display_data", "data": {"image/png": each}, "metadata": {}} for each in _figures()]


def _figures() -> list[str]:
    """What was drawn, as PNG in base64."""
    from matplotlib import pyplot

    drawn = []
    for number in pyplot.get_fignums():
        file = io.BytesIO()
        pyplot.figure(number).savefig(file, format="png", dpi=DOTS, bbox_inches="tight", metadata={"Software": None})
        drawn.append(base64.b64encode(file.getvalue()).decode())
    pyplot.close("all")
    return drawn


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def run_in(folder: Path, notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """What each cell shows when the notebook runs in a folder; warnings are errors."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", append=True)  # those of pytest know what tests leave
            return list(run(notebook))
    finally:
        os.chdir(here)


def main() -> None:
    """Run and store notebooks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path, default=sorted(GALLERY.glob("*.ipynb")), metavar="NOTEBOOK")
    for path in parser.parse_args().notebooks:
        notebook = json.loads(path.read_text())
        with tempfile.TemporaryDirectory() as folder:
            for number, (cell, shown) in enumerate(zip(code(notebook), run_in(Path(folder), notebook)), 1):
                cell |= {"execution_count": number, "outputs": shown}
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
