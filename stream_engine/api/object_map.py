"""The map of the objects, as a picture and as a table."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stream_engine.api.output_frames import frame
from stream_engine.exports.object_table import axis_heads
from stream_engine.report import object_files
from stream_engine.report.drawings import without_regions
from stream_engine.report.figure_files import draw
from stream_engine.report.figure_marks import Markers
from stream_engine.report.material import Material
from stream_engine.report.sections import object_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_REGIONS = 50  # objects up to which regions are drawn by default


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
        places = material.drawn_map if flat else material.places
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

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        c: Any = None,
        s: Any = None,
        labels: bool | Sequence[str] = True,
        images: "str | PathLike[str] | None" = None,
        regions: bool | None = None,
        **more: Any,
    ) -> "Axes":
        """Draw the map with matplotlib, as the report does; of more than two dimensions the first two.

        Sets of objects that were never compared with each other have a frame each inside.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.
        c : color or (n,) array-like, optional
            Colours, or values for `cmap`, in the order of `names`, as for `Axes.scatter`. By default colours and shapes
            show the clusters, if any were fitted.
        s : float or (n,) array-like, optional
            Sizes of the markers in points squared, as for `Axes.scatter`.
        labels : bool or (n,) sequence of str, default True
            Whether names stand beside the points, or the texts that do.
        images : path, optional
            Folder with pictures named after the objects, or a table ``object,image,text``: pictures are shown as marks,
            without overlap.
        regions : bool, optional
            Whether to draw 95 % regions of the coordinates; by default where they are known and at most 50 objects are
            drawn.
        **more
            Passed to `Axes.scatter`: `alpha`, `cmap`, `marker`, `edgecolors`, ...

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            A sequence is not as long as `names`, or `images` holds no pictures (`BadObjects`).
        """
        ids = self._material.shown[np.isfinite(self.points[self._material.shown]).all(axis=1)]
        markers = Markers(self._for_each("c", c), self._for_each("s", s), more)
        texts = labels if isinstance(labels, bool) else self._for_each("labels", labels).tolist()
        pictures = object_files.read(Path(images), {self.names[i] for i in ids.tolist()}).pictures if images else {}
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots(layout="constrained")[1]
        drawings = list(object_map.frames(self._material, self._places, ids))
        if not (len(ids) <= MAX_REGIONS if regions is None else regions):
            drawings = [without_regions(drawing) for drawing in drawings]
        if len(drawings) == 1:
            return draw(drawings[0], ax, pictures, texts, markers)
        ax.set_axis_off()
        for number, drawing in enumerate(drawings):
            place = (number / len(drawings), 0.0, 0.92 / len(drawings), 1.0)
            draw(drawing, ax.inset_axes(place), pictures, texts, markers)
        return ax

    def _for_each(self, argument: str, per_object: Any) -> Any:
        """An argument with a value for each object, restricted to the drawn ones; a single value is returned
        unchanged."""
        if per_object is None or isinstance(per_object, str) or np.ndim(per_object) == 0:
            return per_object
        values = np.asarray(per_object)
        if len(values) == len(self.names):
            return values[self._material.shown]
        if argument == "c" and values.ndim == 1 and len(values) in (3, 4) and values.dtype.kind == "f":
            return tuple(values.tolist())  # a colour: RGB or RGBA
        raise ValueError(f"{argument}: got {len(values)} values, expected {len(self.names)}, one for each object")

    def to_frame(self) -> Any:
        """The coordinates as a table.

        Returns
        -------
        data frame, shape (n_objects, ...)
            Columns object; x, y, z, axis_4, ... as in the table of `objects`; with covariances sd_x, sd_y, ..., the
            standard deviations along each axis.
        """
        heads = axis_heads(self.d)
        columns: dict[str, Any] = {"object": list(self._material.snapshot.objects)}  # as other tables name them
        columns |= {head: self.points[:, a].astype(float) for a, head in enumerate(heads)}
        if self.covariance is not None:
            deviation = np.sqrt(np.einsum("naa->na", self.covariance).astype(float))
            columns |= {f"sd_{head}": deviation[:, a] for a, head in enumerate(heads)}
        return frame(columns, self._frames)

    def __repr__(self) -> str:
        return f"Map of {len(self.names):,} objects in {self.d} dimension{'s' if self.d != 1 else ''}"
