"""Where objects lie, as a picture and as a frame."""

from typing import TYPE_CHECKING, Any

import numpy as np

from stream_engine.api.results import frame
from stream_engine.exports.object_table import axis_heads
from stream_engine.report import object_map
from stream_engine.report.figure_files import draw
from stream_engine.report.material import Material

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Map:
    """Coordinates of the objects in an embedding, or its two-dimensional picture if `flat`.

    Parameters
    ----------
    material : Material
        The fitted study.
    frames : {'pandas', 'polars', 'arrow'}
        Type of the tables that the map returns.
    flat : bool
        Whether to use the two-dimensional picture.

    Attributes
    ----------
    names : list of str
        The objects.
    points : ndarray, shape (n, d)
        Coordinates; NaN for an object without answers.
    covariance : ndarray, shape (n, d, d), or None
        Uncertainty of each object's coordinates.
    """

    def __init__(self, material: Material, frames: str, flat: bool = False):
        places = material.drawn if flat else material.places
        assert places is not None  # of an embedding that was fitted
        self._material, self._places, self._frames = material, places, frames
        self.names, self.points, self.covariance = list(material.names), places.points, places.covariance

    @property
    def d(self) -> int:
        """Number of dimensions.

        Returns
        -------
        int
            The number.
        """
        return self.points.shape[1]

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the map with matplotlib, as in the report: names, clusters if fitted, 95 % regions. If there are more
        than two dimensions, draw the first two.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        ids = self._material.shown[np.isfinite(self.points[self._material.shown]).all(axis=1)]
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots(layout="constrained")[1]
        made = (object_map.scale if self.d == 1 else object_map.plane)(self._material, self._places, ids)
        return draw(made, ax)

    def to_frame(self) -> Any:
        """The coordinates as a table.

        Returns
        -------
        data frame, shape (n_objects, ...)
            Columns object; x, y, z, axis_4, ... as in the table of `objects`; with covariances sd_x, sd_y, ..., the
            standard deviations along each axis.
        """
        heads = axis_heads(self.d)
        columns: dict[str, Any] = {"object": self.names}
        columns |= {head: self.points[:, a].astype(float) for a, head in enumerate(heads)}
        if self.covariance is not None:
            deviation = np.sqrt(np.einsum("naa->na", self.covariance).astype(float))
            columns |= {f"sd_{head}": deviation[:, a] for a, head in enumerate(heads)}
        return frame(columns, self._frames)

    def __repr__(self) -> str:
        return f"Map of {len(self.names):,} objects in {self.d} dimension{'s' if self.d != 1 else ''}"
