"""`Study`: what is known after some answers, and what can be learned of them when somebody asks."""

import time
import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from stream_engine import asking
from stream_engine.api.feeding import Learning, RejectedRow
from stream_engine.api.frames import BadFrame, frame, name_of
from stream_engine.counts.worker_votes import names_of
from stream_engine.refits import NEEDED, REFITS, refit_module
from stream_engine.report.findings.words import some
from stream_engine.state.artifact import Artifact
from stream_engine.state.exclusion import noted
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, encode

if TYPE_CHECKING:
    from stream_engine.api.dendrogram import Dendrogram
    from stream_engine.api.object_map import Map
    from stream_engine.api.options import AnswerIs, AnswersBy, EventType, Layout, QuestionType, RefitKind, Strategy
    from stream_engine.report.material import Material
    from stream_engine.report.writing import Report
    from stream_engine.service.logs import Bars

OF_A_RUN = ("sdp_clustering", "embedding", "clusters")  # what a page of a study shows
WITH_LABELS = ("triplet_boost", "classify")
LONG = 2.0  # seconds of a fit, after which a progress bar is shown


class Study:
    """Answers, and everything that can be learned from them. A model is fitted when a result needs it, and only once.

    Use `stream_engine.read` to create a study.

    Parameters
    ----------
    published : Published or Learning
        The counts, with the fits so far.
    refused : sequence of RejectedRow
        Rejected rows.
    read_as : str
        One line about the recognised layout of a tool, if any.
    seed : int
        Random seed of all fits.
    frames : {'pandas', 'polars', 'arrow'}
        Type of the tables that the study returns.
    directory : str
        Name of the state directory in messages.

    Examples
    --------
    >>> from stream_engine import read
    >>> study = read([("lemon", "lime", "bread"), ("lemon", "lime", "bread"), ("bread", "bun", "lime")], frames="arrow")
    >>> study.objects().select(["object", "answers"]).to_pydict()
    {'object': ['lemon', 'lime', 'bread', 'bun'], 'answers': [2, 3, 3, 1]}
    >>> study.questions().column("n_near").to_pylist()
    [2, 1]
    """

    def __init__(
        self,
        published: Published | Learning,
        refused: Sequence[RejectedRow] = (),
        read_as: str = "",
        *,
        seed: int = 0,
        frames: str = "arrow",
        directory: str = "DIR",
    ):
        self._read, self._refused, self._directory = published, tuple(refused), directory
        self._whole: Study | None = None  # with everybody, where participants are excluded here
        self._others: dict[tuple[str, str], Artifact] = {}  # fitted with other than the defaults, for one question
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
        if isinstance(self._read, Learning):
            self._read = Published(encode(self._read.snapshot())[1], {})
        return self._read

    @property
    def fitted(self) -> tuple[str, ...]:
        """The refits so far.

        Returns
        -------
        tuple of str
            Their kinds.
        """
        return () if isinstance(self._read, Learning) else tuple(self._read.artifacts)

    def fit(self, kind: "RefitKind", **params: Any) -> "Study":
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
        self._keep(kind, *self._made(kind, params))
        return self

    def _keep(self, kind: str, artifact: Artifact, seconds: float) -> None:
        published = self.published
        self._read = published._replace(
            artifacts={**published.artifacts, kind: artifact}, seconds={**published.seconds, kind: seconds}
        )

    def exclude(self, *participants: str | int) -> "Study":
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

        whole = self._whole or self
        more_names = [_participant("exclude", each) for each in participants]
        check_known(more_names, whole.snapshot, "exclude")
        names = tuple(sorted({*self.published.excluded, *more_names}))
        if not names:
            return self
        fewer = Published(without(whole.snapshot, names), {}, excluded=names)
        more: dict[str, Any] = {"seed": self.seed, "frames": self.frames, "directory": self._directory}
        made = Study(fewer, self._refused, self.read_as, **more)
        made._whole = whole
        return made

    def include(self, *participants: str | int) -> "Study":
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
        names, back = self.published.excluded, {_participant("include", each) for each in participants}
        if strangers := sorted(back - set(names)):
            raise ValueError(f"include: {strangers[0]!r} is not excluded; excluded are {', '.join(names) or 'none'}")
        if self._whole is None:
            return self
        left = set(names) - back if back else set()
        return self._whole.exclude(*left) if left else self._whole

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
        _check_kind("details", kind)
        return dict(self._artifact(kind).report)

    def objects(self) -> Any:
        """All objects, in order of first appearance.

        Returns
        -------
        data frame, shape (n_objects, ...)
            Columns of the export `objects.csv`: object, answers, contradicted, agreement, and depending on the fits so
            far cluster, stability, x, y, the 95 % ellipse, nearest_1, nearest_2, nearest_3, label, predicted.
        """
        from stream_engine.exports.object_table import table

        return self._frame(table(self.published))

    def questions(self) -> Any:
        """All questions that were asked. You can pass the result to `read`.

        Returns
        -------
        data frame, shape (n_questions, ...)
            Columns of the export `questions.csv`: anchor, near (by the majority), far, the numbers of answers n_near
            and n_far, confidence in the majority, predicted (by AddS-3 from all other answers).
        """
        from stream_engine.exports import NothingToExport
        from stream_engine.exports.declarations import columns
        from stream_engine.exports.evidence import questions
        from stream_engine.exports.files import NameColumn

        try:
            arrays = questions(self.published)["questions"].arrays
        except NothingToExport:
            return self._frame({name: [] for name in columns("questions")})
        names = self.snapshot.objects
        ids = ("anchor", "near", "far")
        return self._frame({head: NameColumn(each, names) if head in ids else each for head, each in arrays.items()})

    def refused(self) -> Any:
        """Rejected events, at most 10,000.

        Returns
        -------
        data frame
            Columns where, reason (a code), message.
        """
        names = RejectedRow._fields
        return self._frame({name: [getattr(each, name) for each in self._refused] for name in names})

    def models(self) -> Any:
        """Prediction accuracy of all fitted models on held-out answers, best first. Fits the embedding.

        Returns
        -------
        data frame
            One row per model, with the columns of the export `models`: accuracy, inter-rater agreement, log loss, and
            others.
        """
        from stream_engine.exports.models import COLUMNS, table

        self._artifact("embedding")
        rows = table(self.published)
        return self._frame({name: [row.get(name) for row in rows] for name in ("model", *COLUMNS, "seconds")})

    def map(self, d: int | None = 2) -> "Map":
        """A map of the objects. Fits the embedding.

        Parameters
        ----------
        d : int, optional
            Number of dimensions; None: the number that predicts held-out answers best.

        Returns
        -------
        Map
            Coordinates with their uncertainty; `Map.plot` draws them.

        Raises
        ------
        ValueError
            If d is not a positive integer, or if the answers are not sufficient (`CannotRefit`).
        """
        from stream_engine.api.object_map import Map

        d = _count("map: d", d)
        held = self._artifact("embedding")
        if d is None or held.arrays["X"].shape[1] == d or (d == 2 and "picture" in held.arrays):
            return Map(self._material(embedding=held), self.frames, flat=d == 2)
        return Map(self._material(embedding=self._other("embedding", dimensions=d)), self.frames)

    def clusters(self, k: int | None = None) -> Any:
        """Groups of the objects, with their grade. Fits the embedding. `details("clusters")["note"]` says it in words.

        Parameters
        ----------
        k : int, optional
            Number of clusters of the semidefinite program (refit `sdp_clustering`), which has no grade; by default the
            groups of the refit `clusters`.

        Returns
        -------
        data frame, shape (n_objects, ...)
            Columns object and cluster (counted from 1, the largest first; missing: none). Without k, also stability
            (the share of replicates that assign the object to this group), second (the next most frequent
            group), between (whether it is between groups, by its stability), subgroup (if its group splits again), and
            the grade, the same in every row: "clearly separated", "separated", "not separable" (the groups are then
            parts), or "cannot tell".

        Raises
        ------
        ValueError
            If k is not a positive integer, or if the answers are not sufficient (`CannotRefit`).
        """
        from stream_engine.exports.clusters import cluster_table

        k = _count("clusters: k", k)
        artifact = self._artifact("clusters") if k is None else self._other("sdp_clustering", k=k)
        columns = cluster_table(artifact, list(self.snapshot.objects))
        del columns["cluster_label"]
        for name in {"cluster", "second", "subgroup"} & columns.keys():
            columns[name] = np.ma.masked_less(columns[name], 0)
        if "stability" in columns:
            columns["stability"] = np.ma.masked_invalid(columns["stability"])
        return self._frame(columns)

    def hierarchy(self, similarity: str = "adds3") -> "Dendrogram":
        """Objects joined one after another, similar ones first. Fits the hierarchy.

        Parameters
        ----------
        similarity : str
            What is joined by: adds3, adds4, k1, k2, mulk4 or embedding.

        Returns
        -------
        Dendrogram
            The linkage of higher revenue; `Dendrogram.plot` draws it.

        Raises
        ------
        ValueError
            If the similarity is unknown, or if the answers are not sufficient (`CannotRefit`).
        """
        from stream_engine.api.dendrogram import Dendrogram

        artifact = self._artifact("hierarchy")
        if artifact.params["similarity"] != similarity:
            artifact = self._other("hierarchy", similarity=similarity)
        return Dendrogram(artifact, list(self.snapshot.objects), self.frames)

    def workers(self) -> Any:
        """Agreement, accuracy and weight of each participant. Fits the reliability.

        Returns
        -------
        data frame, shape (n_workers, ...)
            Columns worker, events, agreed, disagreed, contradictions, accuracy, weight, response_time,
            under_300_ms, position_share, longest_run with their p-values, and others; lapse if the embedding was
            fitted.

        Raises
        ------
        ValueError
            If no answer names its participant.
        """
        from stream_engine.data.packed_names import unpack_names
        from stream_engine.exports.workers import workers

        if not self._workers_named():
            raise ValueError("workers: got answers without participants, expected a column worker; see columns={...}")
        self._artifact("reliability")
        columns = dict(workers(self.published)["workers"].tables["workers"])
        if (embedding := self.published.artifacts.get("embedding")) is not None and "utf8" in embedding.arrays:
            names = unpack_names(embedding.arrays["utf8"], embedding.arrays["offsets"])
            lapse = dict(zip(names, embedding.arrays["worker_lapse"].tolist()))
            columns["lapse"] = [lapse.get(worker) for worker in columns["worker"]]
        return self._frame(columns)

    def predict(
        self,
        questions: Any,
        model: str | None = None,
        *,
        type: "EventType | None" = None,
        participant: str | int | None = None,
        columns: Mapping[str, str | Sequence[str]] | None = None,
        where: Mapping[str, Any] | None = None,
        answers_by: "AnswersBy" = "name",
        answer_is: "AnswerIs" = "nearer",
        **layout: "Unpack[Layout]",
    ) -> Any:
        """Predict answers to questions.

        Parameters
        ----------
        questions : data frame, list, path, or list of paths
            Questions with anchor, left, right (or pairs near_i, near_j, far_i, far_j), as a table, dicts, tuples or
            files; or answers, whose actual answers are ignored.
        model : str, optional
            A model of `models()`; by default the best one.
        type : str, optional
            Type of every event, as in `read`.
        participant : str or int, optional
            Whose answers to predict, by the embedding; by default those of a new participant. A warning says if the
            embedding knows nothing of them.
        columns : mapping, optional
            Name(s) of the column(s) for each field, as in `read`.
        where : mapping, optional
            Read only rows with this value in the column, as in `read`.
        answers_by : {'name', 'position', 'index', 'flag'}
            How answers identify an object, as in `read`.
        answer_is : {'nearer', 'farther'}
            Which object an answer names, as in `read`.
        **layout : optional
            Layout of text files, as in `read`.

        Returns
        -------
        data frame, shape (n_questions, ...)
            The questions with p, the probability of the answer that the first object is nearer (missing: the model does
            not know an object), and the model.

        Raises
        ------
        ValueError
            If the questions or the model are invalid.
        """
        from stream_engine.api.options import options_of, questions_in
        from stream_engine.evaluation.answering import answered

        whose = None if participant is None else _participant("predict", participant)
        rows, names, note = questions_in(
            questions, options_of(type, columns, where, answers_by, None, answer_is), layout
        )
        if note:
            warnings.warn(note, stacklevel=2)
        if model is None or model == "embedding" or whose is not None:
            self._artifact("embedding")
        found = answered(self.published, names, model, whose)
        if whose is not None and found.as_group:
            warnings.warn(self._as_group(whose), stacklevel=2)
        fields = list(dict.fromkeys(field for row in rows for field in row))
        answers: dict[str, Any] = {field: [row.get(field) for row in rows] for field in fields}
        answers["p"] = [None if p != p else p for p in found.p.tolist()]
        return self._frame(answers | {"model": found.by.tolist()})

    def align(self, features: Mapping[str, Any], *, names: Sequence[Any] | None = None, linear: bool = True) -> Any:
        """Test which feature sets predict the answers, as they are and after learning. Fits the embedding.

        Parameters
        ----------
        features : mapping
            Name -> features of objects: a data frame (names in its index or first column), a dict {object: vector}, a
            file, or an array with `names`.
        names : sequence, optional
            Names of the rows of arrays.
        linear : bool
            Whether to learn linear maps, which takes longest.

        Returns
        -------
        data frame
            Columns of the export `alignment`: set, transform, accuracy with its 95 % interval, by_object (accuracy on
            objects that were not learned from), weight and gain in the combination of all sets, and others. The report
            has a section; `predict` then knows objects of these features that nobody compared.

        Raises
        ------
        BadFeatures
            If a set cannot be used; one line.
        """
        from stream_engine.api.features import tables_of
        from stream_engine.exports.alignment import table
        from stream_engine.refits import alignment
        from stream_engine.service.logs import Bars

        tables, began = tables_of(features, names), time.process_time()
        self._artifact("embedding")
        with Bars(delay=LONG) as bars:
            progress = partial(_show, bars, "alignment")
            artifact = alignment.aligned(self.snapshot, tables, alignment.Params(linear=linear), self.seed, progress)
        self._keep("alignment", artifact, round(time.process_time() - began, 3))
        return self._frame(table(self.published))

    def ask(
        self,
        n: int = 100,
        strategy: "Strategy" = "coverage",
        *,
        type: "QuestionType" = "pick",
        objects: Collection[str] = (),
        random_share: float = asking.RANDOM_SHARE,
    ) -> Any:
        """Select the questions to ask next.

        Parameters
        ----------
        n : int
            Number of questions.
        strategy : {'coverage', 'random', 'uncertainty', 'information-gain', 'landmark', 'landmark-k2'}
            An asking strategy. Fits the embedding if the strategy uses it.
        type : {'pick', 'triplet', 'odd_one_out'}
            Type of the events.
        objects : collection of str
            Further objects to ask about.
        random_share : float
            Share of random questions, if the strategy uses a model.

        Returns
        -------
        data frame, shape (n, ...)
            Events without the answer, sorted by priority: id, type, anchor, shown (or objects), sampler, propensity.

        Raises
        ------
        CannotAsk
            A ValueError: the arguments are invalid, or there are too few objects.
        """
        from stream_engine.asking.as_events import chosen_for, events
        from stream_engine.asking.known import known_from, with_objects

        by_model = strategy in asking.BY_MODEL and self.snapshot.counters["comparisons"]
        known = known_from(self.snapshot, self._artifact("embedding") if by_model else None)
        known = with_objects(known, objects)
        rows = list(events(chosen_for(type, known, n, strategy, self.seed, random_share), known, type))
        fields = list(dict.fromkeys(field for row in rows for field in row))
        return self._frame({field: [row.get(field) for row in rows] for field in fields})

    def report(
        self,
        out: str | Path = "report.html",
        figures: str | Path | None = None,
        *,
        workers: bool = False,
        pictures: str | Path | None = None,
        figure_width: str = "85mm",
        font: str | None = None,
        font_size: str = "8pt",
    ) -> "Report":
        """Write the report. Fits what a run fits; meanwhile the page shows a quick map, marked as preliminary.

        Parameters
        ----------
        out : str or Path
            File of the HTML page.
        figures : str or Path, optional
            Folder for the figures as SVG, PDF and PNG.
        workers : bool
            Whether to show individual participants.
        pictures : str or Path, optional
            Folder or table of pictures of the objects.
        figure_width : str
            Width of the figures, as "85mm", "3.3in" or "240pt".
        font : str, optional
            Font family of the figures.
        font_size : str
            Size of their text, as "8pt".

        Returns
        -------
        Report
            The written files, and notes about them.
        """
        from stream_engine.refits.quick_map import with_quick_map
        from stream_engine.report.figure_files import style_of
        from stream_engine.report.findings.facts import Commands
        from stream_engine.report.writing import write

        page, style, commands = Path(out), style_of(figure_width, font, font_size), Commands(self._directory)
        folder, beside = (None if each is None else Path(each) for each in (figures, pictures))
        kinds = [*OF_A_RUN, *(WITH_LABELS if self.snapshot.labels else ())]
        first = with_quick_map(self.published)
        if first is not self.published:
            write(first, page, None, None, workers, beside, commands, style, kinds)
        try:
            for kind in kinds:
                if self._whole is not None:
                    self._whole._artifact(kind)
                self._artifact(kind)
            if workers and self._workers_named():
                self._artifact("reliability")
        except BaseException:
            if first is not self.published:
                page.unlink(missing_ok=True)  # it says that fits are running
            raise
        return write(self.published, page, None, folder, workers, beside, commands, style)

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
            store.publish(self.snapshot)
            for artifact in self.published.artifacts.values():
                store.publish_artifact(artifact)
        finally:
            lock.release()
        return folder

    def _as_group(self, participant: str) -> str:
        """Why the predictions of this participant are the group's."""
        from stream_engine.state.exclusion import BadExclusion, check_known

        prefix = "predict: by the group's weights"
        if participant in self.published.excluded:
            return f"{prefix}: participant {participant!r} is excluded"
        try:
            check_known([participant], self.snapshot, prefix)
        except BadExclusion as error:
            return str(error)
        return f"{prefix}: participant {participant!r} has too few answers for weights or a lapse rate of their own"

    def _workers_named(self) -> bool:
        votes = self.snapshot.section("worker_votes")
        return bool(votes) and any(names_of(votes))

    def _artifact(self, kind: str) -> Artifact:
        """The refit with its defaults, or as `fit` made it."""
        if kind not in self.published.artifacts:
            self._keep(kind, *self._made(kind, {}))
        return self.published.artifacts[kind]

    def _other(self, kind: str, **params: Any) -> Artifact:
        """A refit with parameters of its own, which does not stand for the study."""
        key = kind, repr(sorted(params.items()))
        if key not in self._others:
            self._others[key] = self._made(kind, params)[0]
        return self._others[key]

    def _made(self, kind: str, params: Mapping[str, Any]) -> tuple[Artifact, float]:
        from threadpoolctl import threadpool_limits

        from stream_engine.service.logs import Bars
        from stream_engine.service.settings.loading import refit_params

        _check_kind("fit", kind)
        checked, began = refit_params(kind, params), time.process_time()
        more = {"needed": self._artifact(NEEDED[kind])} if kind in NEEDED else {}
        with threadpool_limits(1), Bars(delay=LONG) as bars:
            progress = partial(_show, bars, kind)
            artifact = refit_module(kind).refit(self.snapshot, checked, self.seed, progress=progress, **more)
        if self._whole is not None:
            before = self._whole.published.artifacts.get(kind)
            artifact = noted(artifact, self.published.excluded, before)
        return artifact, round(time.process_time() - began, 3)

    def _material(self, **instead: Artifact) -> "Material":
        from stream_engine.report.material import material

        published = self.published
        return material(published._replace(artifacts={**published.artifacts, **instead}))

    def _frame(self, columns: Mapping[str, Any]) -> Any:
        return frame(columns, self.frames)

    @property
    def _counters(self) -> Mapping[str, Any]:
        return self._read.counters if isinstance(self._read, Learning) else self._read.snapshot.counters

    @property
    def _n_objects(self) -> int:
        return self._read.n_objects if isinstance(self._read, Learning) else len(self._read.snapshot.objects)

    def __len__(self) -> int:
        return int(self._counters["events"])

    def __repr__(self) -> str:
        counters = self._counters
        refused = sum(counters["rejected"].values())
        said = f"Study of {some(counters['events'], 'event')}: {some(self._n_objects, 'object')}"
        said += f", {refused:,} rejected" if refused else ""
        return f"{said}, {'fitted: ' + ', '.join(self.fitted) if self.fitted else 'nothing fitted yet'}"

    def _repr_html_(self) -> str:
        counters = self._counters
        rows = {
            "events": f"{counters['events']:,}",
            "comparisons": f"{counters['comparisons']:,}",
            "refused": f"{sum(counters['rejected'].values()):,}",
            "objects": f"{self._n_objects:,}",
            "fitted": ", ".join(self.fitted) or "nothing yet",
            "read as": self.read_as.removeprefix("read as "),
        }
        cells = "".join(f"<tr><th>{head}</th><td>{escape(text)}</td></tr>" for head, text in rows.items() if text)
        return f"<table><caption>Study</caption>{cells}</table>"


def _show(bars: "Bars", kind: str, done: int, total: int, **figures: Any) -> None:
    bars.show(kind, done, total, figures)


def _check_kind(what: str, kind: str) -> None:
    """Raises ValueError unless there is such a refit."""
    if kind not in REFITS:
        raise ValueError(f"{what}: got {kind!r}, expected one of {', '.join(REFITS)}")


def _participant(what: str, given: Any) -> str:
    """The name of a participant as `read` has it. Raises `BadFrame`."""
    if (name := name_of(given)) is None:
        raise BadFrame(f"{what}: got the participant {given!r} ({type(given).__name__}), expected text or an integer")
    return name


def _count(what: str, given: Any) -> int | None:
    """A number of something, or None. Raises ValueError."""
    if given is None:
        return None
    if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < 1:
        raise ValueError(f"{what}: got {given!r}, expected an integer from 1, or None")
    return int(given)
