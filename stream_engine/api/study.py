"""`Study`: the results of a study."""

import time
import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from stream_engine import asking
from stream_engine.data.numbers_in_words import amount
from stream_engine.state.artifact import Artifact

if TYPE_CHECKING:
    from stream_engine.api.dendrogram import Dendrogram
    from stream_engine.api.object_map import Map
    from stream_engine.api.options import AnswerIs, AnswersBy, EventType, Layout, QuestionType, Strategy
    from stream_engine.report.material import Material
    from stream_engine.report.writing import Report

from stream_engine.api.study_fits import PROGRESS_DELAY, participant_name, show_progress
from stream_engine.api.study_tables import Tables, count_of

# Refits of the report, and further ones if objects have labels.
REPORT_REFITS, LABEL_REFITS = ("sdp_clustering", "embedding", "clusters"), ("triplet_boost", "classify")


class Study(Tables):
    """Answers, and everything that can be learned from them. A model is fitted when a result needs it, and only once.

    Use `stream_engine.read` to create a study.

    Parameters
    ----------
    published : Published or StudyEngine
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

    def map(self, d: int | None = 2) -> "Map":
        """A map of the objects. Fits the embedding.

        Parameters
        ----------
        d : int, optional
            Number of dimensions; None: the smallest that predicts held-out answers nearly as well as the best.

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

        d = count_of("map: d", d)
        artifact = self._artifact("embedding")
        if d is None or artifact.arrays["X"].shape[1] == d or (d == 2 and "picture" in artifact.arrays):
            return Map(self._material(embedding=artifact), self.frames, flat=d == 2)
        return Map(self._material(embedding=self._extra_artifact("embedding", dimensions=d)), self.frames)

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
        from stream_engine.evaluation.connection import are_connected, components

        artifact = self._artifact("hierarchy")
        if artifact.params["similarity"] != similarity:
            artifact = self._extra_artifact("hierarchy", similarity=similarity)
        sets = components(self.snapshot)
        if sets is not None and not are_connected(sets):
            warnings.warn(
                f"the objects fall into {sets.max() + 1:,} sets that were never compared with each other, or by few "
                "questions: the tree joins them last, and these heights mean nothing",
                stacklevel=2,
            )
        return Dendrogram(artifact, list(self.snapshot.objects), self.frames)

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
            not know an object, or the objects are of sets that were never compared), and the model.

        Raises
        ------
        ValueError
            If the questions or the model are invalid.
        """
        from stream_engine.api.options import options_of
        from stream_engine.api.question_tables import questions_in
        from stream_engine.evaluation.answering import answered

        name = None if participant is None else participant_name("predict", participant)
        rows, names, note = questions_in(
            questions, options_of(type, columns, where, answers_by, None, answer_is), layout
        )
        if note:
            warnings.warn(note, stacklevel=2)
        if model is None or model == "embedding" or name is not None:
            self._artifact("embedding")
        predictions = answered(self.published, names, model, name)
        if predictions.n_across:
            warnings.warn(
                f"{predictions.n_across:,} questions are about objects of sets that were never compared with each "
                "other, or by few questions: their answers cannot be predicted, and p is missing",
                stacklevel=2,
            )
        if name is not None and predictions.as_group:
            warnings.warn(self._as_group(name), stacklevel=2)
        fields = list(dict.fromkeys(field for row in rows for field in row))
        answers: dict[str, Any] = {field: [row.get(field) for row in rows] for field in fields}
        answers["p"] = [None if p != p else p for p in predictions.p.tolist()]
        return self._frame(answers | {"model": predictions.by.tolist()})

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
        from stream_engine.data.progress_bars import Bars
        from stream_engine.exports.alignment import table
        from stream_engine.refits import alignment

        tables, began = tables_of(features, names), time.process_time()
        self._artifact("embedding")
        with Bars(delay=PROGRESS_DELAY) as bars:
            progress = partial(show_progress, bars, "alignment")
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
        from stream_engine.asking.as_events import choose_for_type, events
        from stream_engine.asking.knowledge import knowledge_of, with_objects

        by_model = strategy in asking.BY_MODEL and self.snapshot.counters["comparisons"]
        evidence = knowledge_of(self.snapshot, self._artifact("embedding") if by_model else None)
        evidence = with_objects(evidence, objects)
        rows = list(events(choose_for_type(type, evidence, n, strategy, self.seed, random_share), evidence, type))
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
        from stream_engine.report.figure_style import style_of
        from stream_engine.report.findings.facts import Commands
        from stream_engine.report.writing import write

        page, style, commands = Path(out), style_of(figure_width, font, font_size), Commands(self._directory)
        folder, picture_files = (None if path is None else Path(path) for path in (figures, pictures))
        kinds = [*REPORT_REFITS, *(LABEL_REFITS if self.snapshot.labels else ())]
        preliminary = with_quick_map(self.published)
        if preliminary is not self.published:
            write(preliminary, page, None, None, workers, picture_files, commands, style, kinds)
        try:
            for kind in kinds:
                if self._full_study is not None and kind not in self.fitted:
                    self._full_study._artifact(kind)
                self._artifact(kind)
            if workers and self._workers_named():
                self._artifact("reliability")
        except BaseException:
            if preliminary is not self.published:
                page.unlink(missing_ok=True)  # the page says that fits are running
            raise
        return write(self.published, page, None, folder, workers, picture_files, commands, style)

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

    def _material(self, **instead: Artifact) -> "Material":
        from stream_engine.report.material import material

        published = self.published
        return material(published._replace(artifacts={**published.artifacts, **instead}))

    def __len__(self) -> int:
        return int(self._counters["events"])

    def __repr__(self) -> str:
        counters = self._counters
        refused = sum(counters["rejected"].values())
        text = f"Study of {amount(counters['events'], 'event')}: {amount(self._n_objects, 'object')}"
        text += f", {refused:,} rejected" if refused else ""
        text += f", {amount(len(excluded), 'participant')} excluded" if (excluded := self.published.excluded) else ""
        return f"{text}, {'fitted: ' + ', '.join(self.fitted) if self.fitted else 'nothing fitted yet'}"

    def _repr_html_(self) -> str:
        counters = self._counters
        rows = {
            "events": f"{counters['events']:,}",
            "comparisons": f"{counters['comparisons']:,}",
            "refused": f"{sum(counters['rejected'].values()):,}",
            "excluded": ", ".join(sorted(self.published.excluded)),
            "objects": f"{self._n_objects:,}",
            "fitted": ", ".join(self.fitted) or "nothing yet",
            "read as": self.read_as.removeprefix("read as "),
        }
        cells = "".join(f"<tr><th>{head}</th><td>{escape(text)}</td></tr>" for head, text in rows.items() if text)
        return f"<table><caption>Study</caption>{cells}</table>"
