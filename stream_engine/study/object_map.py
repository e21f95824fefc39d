"""Where objects lie, as a picture and as a frame."""

from typing import TYPE_CHECKING, Any

import numpy as np

from stream_engine.report import object_map
from stream_engine.report.figure_files import draw
from stream_engine.report.material import Material
from stream_engine.study.results import frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Map:
    """The points of an embedding: `names` (n), `points` (n, d), NaN for an object that nothing was asked about,
    `covariance` (n, d, d) of each place, or None."""

    def __init__(self, material: Material, frames: str):
        places = material.places
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
        """object, axis_1 ... axis_d, and with covariances sd_1 ... sd_d, the standard deviation along each axis."""
        columns: dict[str, Any] = {"object": self.names}
        columns |= {f"axis_{a + 1}": self.points[:, a].astype(float) for a in range(self.d)}
        if self.covariance is not None:
            deviation = np.sqrt(np.einsum("naa->na", self.covariance).astype(float))
            columns |= {f"sd_{a + 1}": deviation[:, a] for a in range(self.d)}
        return frame(columns, self._frames)

    def __repr__(self) -> str:
        return f"Map of {len(self.names):,} objects in {self.d} dimension{'s' if self.d != 1 else ''}"
