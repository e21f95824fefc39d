"""`Study`: what is known after some answers, and what can be learned of them when somebody asks."""

import time
import warnings
from collections.abc import Collection, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stream_engine import asking
from stream_engine.api.feeding import RejectedRow
from stream_engine.api.learning import Learning
from stream_engine.api.results import frame
from stream_engine.counts.worker_votes import names_of
from stream_engine.findings.words import some
from stream_engine.refits import REFITS, refit_module
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, encode

if TYPE_CHECKING:
    from stream_engine.api.object_map import Map
    from stream_engine.report.material import Material
    from stream_engine.report.writing import Report

OF_A_RUN = ("sdp_clustering", "embedding")  # what a page of a study shows
WITH_LABELS = ("triplet_boost", "classify")


class Study:
    """Answers that were read. What is asked for is fitted when it is asked for the first time, and kept.

    `read_as`: one line, where the columns were recognised as those of a tool; `seed`: of whatever is fitted; `frames`:
    what the answers come in, pandas, polars or arrow. `read` makes one.

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
        self._others: dict[tuple[str, str], Artifact] = {}  # fitted with other than the defaults, for one question
        self.read_as, self.seed, self.frames = read_as, seed, frames

    @property
    def snapshot(self) -> Snapshot:
        """What refits and exports read; equal answers give equal ones."""
        return self.published.snapshot

    @property
    def published(self) -> Published:
        """The snapshot with what was fitted to it by now."""
        if isinstance(self._read, Learning):
            self._read = Published(encode(self._read.snapshot())[1], {})
        return self._read

    @property
    def fitted(self) -> tuple[str, ...]:
        """The refits that were made."""
        return () if isinstance(self._read, Learning) else tuple(self._read.artifacts)

    def fit(self, kind: str, **params: Any) -> "Study":
        """Make a refit (embedding, sdp_clustering, kernel_learning, ...: `stream_engine.refits.REFITS`) with these
        parameters, and keep it in place of one that was made before. Raises ValueError: an unknown one, parameters that
        it has not, or answers that it cannot use (`CannotRefit`)."""
        artifact, seconds = self._made(kind, params)
        published = self.published
        self._read = published._replace(
            artifacts={**published.artifacts, kind: artifact}, seconds={**published.seconds, kind: seconds}
        )
        return self

    def details(self, kind: str) -> dict[str, Any]:
        """What a refit says of itself: objective, held-out accuracy, how it chose. Makes it where it is not made."""
        return dict(self._artifact(kind).report)

    def objects(self) -> Any:
        """The export `objects.csv`: a row an object, in the order in which they came: object, answers, contradicted,
        agreement, and what was fitted by now: cluster, stability, x, y, its 95 % ellipse, nearest_1, nearest_2,
        nearest_3, label, predicted."""
        from stream_engine.exports.object_table import table

        return self._frame(table(self.published))

    def questions(self) -> Any:
        """The export `questions.csv`: a row a question that was asked: anchor, near (by the majority), far, n_near and
        n_far answers, confidence in the majority, predicted (by AddS-3 of all other answers). `read` takes it as
        answers."""
        from stream_engine.exports import NothingToExport
        from stream_engine.exports.declarations import columns
        from stream_engine.exports.evidence import questions
        from stream_engine.exports.naming import NameColumn

        try:
            arrays = questions(self.published)["questions"].arrays
        except NothingToExport:
            return self._frame({name: [] for name in columns("questions")})
        names = self.snapshot.objects
        ids = ("anchor", "near", "far")
        return self._frame({head: NameColumn(each, names) if head in ids else each for head, each in arrays.items()})

    def refused(self) -> Any:
        """A row an event that was left out (10,000 of them at most): where, reason (a code), message."""
        names = RejectedRow._fields
        return self._frame({name: [getattr(each, name) for each in self._refused] for name in names})

    def models(self) -> Any:
        """A row a model, the best first: how well it answers questions about judgements that it never had, beside how
        far people agree; see the export `models`. Fits the embedding; others where `fit` made them."""
        from stream_engine.exports.models import COLUMNS, table

        self._artifact("embedding")
        rows = table(self.published)
        return self._frame({name: [row.get(name) for row in rows] for name in ("model", *COLUMNS, "seconds")})

    def map(self, d: int | None = 2) -> "Map":
        """The map in d dimensions; None: the number that predicts held-out answers best. Fits the embedding."""
        from stream_engine.api.object_map import Map

        held = self._artifact("embedding")
        if d is None or held.arrays["X"].shape[1] == d or (d == 2 and "picture" in held.arrays):
            return Map(self._material(embedding=held), self.frames, flat=d == 2)
        return Map(self._material(embedding=self._other("embedding", dimensions=d)), self.frames)

    def clusters(self, k: int | None = None) -> Any:
        """A row an object: object, cluster (missing: in none), and where they were computed stability, the share of
        random halves of the responses that put it into this cluster, second, the cluster that it is in most often
        besides (missing: none), and between, whether stability is below .9; in every row the verdict: "3 clusters",
        "no clusters: a continuum" (then the groups are pieces of it), "cannot tell". None: as many clusters as the
        answers say. `details("sdp_clustering")` says why."""
        artifact = self._artifact("sdp_clustering") if k is None else self._other("sdp_clustering", k=k)
        labels = artifact.arrays["labels"].tolist()
        columns = {
            "object": list(self.snapshot.objects)[: len(labels)],
            "cluster": [each if each >= 0 else None for each in labels],
        }
        if (stability := artifact.arrays.get("stability")) is not None and len(stability) == len(labels):
            columns["stability"] = [float(each) if each == each else None for each in stability]
            if (second := artifact.arrays.get("second")) is not None and len(second) == len(labels):
                columns["second"] = [each if each >= 0 else None for each in second.tolist()]
                columns["between"] = [label >= 0 and each < 0.9 for label, each in zip(labels, stability.tolist())]
        if "verdict" in artifact.report:
            columns["verdict"] = [artifact.report["verdict"]] * len(labels)
        return self._frame(columns)

    def workers(self) -> Any:
        """A row a worker: how many events, agreed and disagreed with the others, contradictions with oneself, accuracy,
        weight; lapse (how often a coin answered) where the embedding was fitted. Raises ValueError where no answer
        names its worker."""
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
        type: str | None = None,
        columns: Mapping[str, str | Sequence[str]] | None = None,
        where: Mapping[str, Any] | None = None,
        answers_by: str = "name",
        **layout: Any,
    ) -> Any:
        """The questions with p, the probability that the first is said to be nearer (missing: of an object that the
        model does not know), and model. `questions`: a table or dicts with anchor, left, right (or pairs near_i,
        near_j, far_i, far_j), tuples, or files; or answers, whose questions are asked again. `model`: a name of
        `models()`; None: the best. The others say how questions are read, as for `read`. Raises ValueError."""
        from stream_engine.api.options import options_of
        from stream_engine.api.questions import questions_in
        from stream_engine.evaluation.answering import answered

        rows, names, note = questions_in(questions, options_of(type, columns, where, answers_by), layout)
        if note:
            warnings.warn(note, stacklevel=2)
        if model is None or model == "embedding":
            self._artifact("embedding")
        found = answered(self.published, names, model)
        fields = list(dict.fromkeys(field for row in rows for field in row))
        answers: dict[str, Any] = {field: [row.get(field) for row in rows] for field in fields}
        answers["p"] = [None if p != p else p for p in found.p.tolist()]
        return self._frame(answers | {"model": found.by.tolist()})

    def ask(
        self,
        n: int = 100,
        strategy: str = asking.DEFAULT,
        *,
        type: str = "pick",
        objects: Collection[str] = (),
        random_share: float = asking.RANDOM_SHARE,
    ) -> Any:
        """n questions, the most useful first, each the event that answers it without the answer: id, type, anchor,
        shown (or objects), sampler, propensity. `objects`: more names that may be asked about. Fits the embedding where
        the strategy asks by one. Raises `CannotAsk` (a ValueError)."""
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
    ) -> "Report":
        """Write a page that shows the study to `out`, and its figures as SVG and PDF into the folder `figures`. Fits
        what a run fits. `workers`: show them one by one; `pictures`: a folder or table of them. Says what it wrote."""
        from stream_engine.report.writing import write

        for kind in (*OF_A_RUN, *(WITH_LABELS if self.snapshot.labels else ())):
            self._artifact(kind)
        if workers and self._workers_named():
            self._artifact("reliability")
        folder, beside = (None if each is None else Path(each) for each in (figures, pictures))
        return write(self.published, Path(out), None, folder, workers, beside, self._directory)

    def save(self, directory: str | Path) -> Path:
        """Make a state directory of it, for the command line and for `read`: the snapshot and what was fitted. Raises
        ValueError where there is a state already."""
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

    def _workers_named(self) -> bool:
        votes = self.snapshot.section("worker_votes")
        return bool(votes) and any(names_of(votes))

    def _artifact(self, kind: str) -> Artifact:
        """The refit with its defaults, or as `fit` made it."""
        if kind not in self.published.artifacts:
            self.fit(kind)
        return self.published.artifacts[kind]

    def _other(self, kind: str, **params: Any) -> Artifact:
        """A refit with parameters of its own, which does not stand for the study."""
        key = kind, repr(sorted(params.items()))
        if key not in self._others:
            self._others[key] = self._made(kind, params)[0]
        return self._others[key]

    def _made(self, kind: str, params: Mapping[str, Any]) -> tuple[Artifact, float]:
        from threadpoolctl import threadpool_limits

        from stream_engine.service.settings.loading import refit_params

        if kind not in REFITS:
            raise ValueError(f"fit: got {kind!r}, expected one of {', '.join(REFITS)}")
        checked, began = refit_params(kind, params), time.process_time()
        with threadpool_limits(1):
            artifact = refit_module(kind).refit(self.snapshot, checked, self.seed)
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
