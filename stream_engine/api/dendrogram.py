"""A hierarchical clustering of the objects, as a picture and as a table."""

from typing import TYPE_CHECKING, Any

import numpy as np

from stream_engine.api.output_frames import frame
from stream_engine.exports.files import merges
from stream_engine.report.figure_files import draw
from stream_engine.report.sections.dendrogram import draw as drawing_of
from stream_engine.state.artifact import Artifact

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Dendrogram:
    """Hierarchical clustering of the objects.

    Parameters
    ----------
    artifact : Artifact
        Of the refit `hierarchy`.
    names : list of str
        All objects.
    frames : {'pandas', 'polars', 'arrow'}
        Type of the table that the dendrogram returns.

    Attributes
    ----------
    names : list of str
        The objects at the leaves.
    linkage : ndarray, shape (m - 1, 4)
        The merges in scipy's format, which its `dendrogram`, `fcluster` and `cophenet` take.
    method : {'average', 'complete'}
        The linkage.
    """

    def __init__(self, artifact: Artifact, names: list[str], frames: str):
        self.names = [names[i] for i in artifact.arrays["leaves"].tolist()]
        self.linkage: np.ndarray = artifact.arrays["linkage"]
        self.method: str = artifact.report["method"]
        self._frames = frames

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the tree with matplotlib, as the report does: leaves at the left.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        drawing = drawing_of(self.linkage, self.names)
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots(figsize=(6.4, drawing.height / 72), layout="constrained")[1]
        return draw(drawing, ax)

    def to_frame(self) -> Any:
        """The merges as a table.

        Returns
        -------
        data frame, shape (m - 1, ...)
            Columns as in the table of the export `hierarchy`: merge; left and right (objects by name, or empty) and
            left_merge and right_merge (earlier merges, or 0); height; objects.
        """
        return frame(merges(self.linkage, self.names), self._frames)

    def __repr__(self) -> str:
        return f"Dendrogram of {len(self.names):,} objects by {self.method} linkage"
