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
    """The points of an embedding, or where `flat` its picture in two dimensions: `names` (n), `points` (n, d), NaN for
    an object that nothing was asked about, `covariance` (n, d, d) of each place, or None."""

    def __init__(self, material: Material, frames: str, flat: bool = False):
        places = material.drawn if flat else material.places
        assert places is not None  # of an embedding that was fitted
        self._material, self._places, self._frames = material, places, frames
        self.names, self.points, self.covariance = list(material.names), places.points, places.covariance

    @property
    def d(self) -> int:
        """How many dimensions it has."""
        return self.points.shape[1]

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw it with matplotlib, as the report does: names, clusters where they were fitted, regions of 95 %; of more
        than two dimensions the first two. Returns the Axes."""
        ids = self._material.shown[np.isfinite(self.points[self._material.shown]).all(axis=1)]
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots(layout="constrained")[1]
        made = (object_map.scale if self.d == 1 else object_map.plane)(self._material, self._places, ids)
        return draw(made, ax)

    def to_frame(self) -> Any:
        """object, its place as in the table of `objects` (x, y, z, axis_4, ...), and with covariances sd_x, sd_y, ...,
        the standard deviation along each axis."""
        heads = axis_heads(self.d)
        columns: dict[str, Any] = {"object": self.names}
        columns |= {head: self.points[:, a].astype(float) for a, head in enumerate(heads)}
        if self.covariance is not None:
            deviation = np.sqrt(np.einsum("naa->na", self.covariance).astype(float))
            columns |= {f"sd_{head}": deviation[:, a] for a, head in enumerate(heads)}
        return frame(columns, self._frames)

    def __repr__(self) -> str:
        return f"Map of {len(self.names):,} objects in {self.d} dimension{'s' if self.d != 1 else ''}"
