"""Answers and the models that are fitted to them: each when a result needs it, and only once."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from stream_engine.api.feeding import RejectedRow
from stream_engine.api.frames import BadFrame, name_of
from stream_engine.api.output_frames import frame
from stream_engine.api.study_engine import StudyEngine
from stream_engine.refits import NEEDED_ARTIFACT, REFITS, refit_module
from stream_engine.state.artifact import Artifact
from stream_engine.state.exclusion import with_exclusions
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, encode

if TYPE_CHECKING:
    from stream_engine.api.options import RefitKind
    from stream_engine.data.progress_bars import Bars

PROGRESS_DELAY = 2.0  # seconds of a fit after which a progress bar is shown


class Fits:
    """Answers and their fits; `Study` has the results."""

    def __init__(
        self,
        published: Published | StudyEngine,
        refused: Sequence[RejectedRow] = (),
        read_as: str = "",
        *,
        seed: int = 0,
        frames: str = "arrow",
        directory: str = "DIR",
    ):
        self._counts, self._refused, self._directory = published, tuple(refused), directory
        self._full_study: Self | None = None  # with all participants, if some are excluded here
        self._extra_artifacts: dict[
            tuple[str, str], Artifact
        ] = {}  # fits with other parameters than those of the study
        self.read_as, self.seed, self.frames = read_as, seed, frames

    @property
    def snapshot(self) -> Snapshot:
        """The input of refits and exports; equal answers give equal snapshots.

        Returns
        -------
        Snapshot
            The snapshot.
        """
        return self.published.snapshot

    @property
    def published(self) -> Published:
        """The snapshot with all fits so far.

        Returns
        -------
        Published
            The published state.
        """
        if isinstance(self._counts, StudyEngine):
            self._counts = Published(encode(self._counts.snapshot())[1], {})
        return self._counts

    @property
    def fitted(self) -> tuple[str, ...]:
        """The refits so far.

        Returns
        -------
        tuple of str
            Their kinds.
        """
        return () if isinstance(self._counts, StudyEngine) else tuple(self._counts.artifacts)

    def fit(self, kind: "RefitKind", **params: Any) -> Self:
        """Fit a model with parameters of your own; it replaces an earlier fit of the same kind.

        Parameters
        ----------
        kind : str
            A refit, such as embedding, clusters or kernel_learning: see `stream_engine.refits.REFITS`.
        **params : optional
            Parameters of the refit.

        Returns
        -------
        Study
            The study itself.

        Raises
        ------
        ValueError
            If the refit or a parameter is unknown, or if the answers are not sufficient (`CannotRefit`).
        """
        self._keep(kind, *self._fit(kind, params))
        return self

    def exclude(self, *participants: str | int) -> Self:
        """A new study without the answers of these participants; this one remains unchanged.

        Parameters
        ----------
        *participants : str or int
            Names, as in the column of participants.

        Returns
        -------
        Study
            Without these and all previously excluded participants. Its report shows what changed.

        Raises
        ------
        ValueError
            If there is no such participant (the message has similar names), or if a statistic cannot be separated by
            participant (`CannotForget`).
        """
        from stream_engine.state.exclusion import check_known, without

        full_study = self._full_study or self
        names_added = [participant_name("exclude", participant) for participant in participants]
        check_known(names_added, full_study.snapshot, "exclude")
        names = tuple(sorted({*self.published.excluded, *names_added}))
        if not names:
            return self
        restricted = Published(without(full_study.snapshot, names), {}, excluded=names)
        options: dict[str, Any] = {"seed": self.seed, "frames": self.frames, "directory": self._directory}
        study = type(self)(restricted, self._refused, self.read_as, **options)
        study._full_study = full_study
        return study

    def include(self, *participants: str | int) -> Self:
        """Add excluded participants again; without arguments, all of them.

        Parameters
        ----------
        *participants : str or int
            Names of excluded participants.

        Returns
        -------
        Study
            The study with these participants.

        Raises
        ------
        ValueError
            If one of them is not excluded.
        """
        names = self.published.excluded
        names_back = {participant_name("include", participant) for participant in participants}
        if not_excluded := sorted(names_back - set(names)):
            raise ValueError(f"include: {not_excluded[0]!r} is not excluded; excluded are {', '.join(names) or 'none'}")
        if self._full_study is None:
            return self
        still_excluded = set(names) - names_back if names_back else set()
        return self._full_study.exclude(*still_excluded) if still_excluded else self._full_study

    def details(self, kind: "RefitKind") -> dict[str, Any]:
        """The report of a refit: objective, held-out accuracy, selected parameters. Fits the model if necessary.

        Parameters
        ----------
        kind : str
            A refit.

        Returns
        -------
        dict
            JSON values by name.

        Raises
        ------
        ValueError
            If the refit is unknown, or if the answers are not sufficient (`CannotRefit`).
        """
        from stream_engine.exports.clusters import reports

        _check_kind("details", kind)
        self._artifact(kind)
        return dict(reports(self.published)[kind])

    def save(self, directory: str | Path) -> Path:
        """Save the snapshot and all fits as a state directory, for the command line and for `read`.

        Parameters
        ----------
        directory : str or Path
            A folder without a state.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        ValueError
            If there is a state already.
        """
        from stream_engine.state.store import Lock, Store

        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        lock = Lock(folder)
        try:
            store = Store(folder)
            if store.sequences():
                raise ValueError(f"save: {folder} has a state already, expected a folder without one")
            store.publish((self._full_study or self).snapshot)
            store.exclude(self.published.excluded)
            for kind, artifact in self.published.artifacts.items():
                store.publish_artifact(artifact)
                if (seconds := self.published.seconds.get(kind)) is not None:
                    store.note_seconds(artifact, seconds)
        finally:
            lock.release()
        return folder

    def _keep(self, kind: str, artifact: Artifact, seconds: float) -> None:
        published = self.published
        self._counts = published._replace(
            artifacts={**published.artifacts, kind: artifact}, seconds={**published.seconds, kind: seconds}
        )

    def _artifact(self, kind: str) -> Artifact:
        """The artifact of a refit, with its defaults or as `fit` made it."""
        if kind not in self.published.artifacts:
            self._keep(kind, *self._fit(kind, {}))
        return self.published.artifacts[kind]

    def _extra_artifact(self, kind: str, **params: Any) -> Artifact:
        """The artifact of a refit with parameters of its own, which does not replace that of the study."""
        key = kind, repr(sorted(params.items()))
        if key not in self._extra_artifacts:
            self._extra_artifacts[key] = self._fit(kind, params)[0]
        return self._extra_artifacts[key]

    def _fit(self, kind: str, params: Mapping[str, Any]) -> tuple[Artifact, float]:
        from threadpoolctl import threadpool_limits

        from stream_engine.data.progress_bars import Bars
        from stream_engine.input.settings.refit_params import refit_params

        _check_kind("fit", kind)
        refit_parameters, began = refit_params(kind, params), time.process_time()
        needed_artifact = {"needed": self._artifact(NEEDED_ARTIFACT[kind])} if kind in NEEDED_ARTIFACT else {}
        with threadpool_limits(1), Bars(delay=PROGRESS_DELAY) as bars:
            progress = partial(show_progress, bars, kind)
            artifact = refit_module(kind).refit(
                self.snapshot, refit_parameters, self.seed, progress=progress, **needed_artifact
            )
        if self._full_study is not None:
            artifact_of_all = self._full_study.published.artifacts.get(kind)
            artifact = with_exclusions(artifact, self.published.excluded, artifact_of_all)
        return artifact, round(time.process_time() - began, 3)

    def _frame(self, columns: Mapping[str, Any]) -> Any:
        return frame(columns, self.frames)

    @property
    def _counters(self) -> Mapping[str, Any]:
        return self._counts.counters if isinstance(self._counts, StudyEngine) else self._counts.snapshot.counters

    @property
    def _n_objects(self) -> int:
        return self._counts.n_objects if isinstance(self._counts, StudyEngine) else len(self._counts.snapshot.objects)


def show_progress(bars: "Bars", kind: str, done: int, total: int, **figures: Any) -> None:
    bars.show(kind, done, total, figures)


def _check_kind(method: str, kind: str) -> None:
    """Raises ValueError unless there is such a refit."""
    if kind not in REFITS:
        raise ValueError(f"{method}: got {kind!r}, expected one of {', '.join(REFITS)}")


def participant_name(method: str, value: Any) -> str:
    """The name of a participant as text. Raises `BadFrame`."""
    if (name := name_of(value)) is None:
        raise BadFrame(f"{method}: got the participant {value!r} ({type(value).__name__}), expected text or an integer")
    return name
