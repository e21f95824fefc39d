"""The facts that findings rest on: one published snapshot with its artifacts, and what several topics need of it."""

import os
import shlex
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from connectors import split_uri
from stream_engine.data.numbers_in_words import amount
from stream_engine.evaluation.connection import (
    JoiningObject,
    are_connected,
    components,
    joining_object,
    questions_across,
)
from stream_engine.evaluation.copied_participants import CopiedParticipant, copied_participants
from stream_engine.evaluation.few_comparisons import comparisons_by_object, too_few
from stream_engine.evaluation.kept_responses import kept_responses
from stream_engine.evaluation.participants import MIN_PARTICIPANTS, ParticipantChecks, check_participants
from stream_engine.evaluation.response_checks import PreferredPosition, preferred_position
from stream_engine.exports.clusters import gated
from stream_engine.exports.models import (
    beats_chance,
    best_above_chance,
    better_baseline,
    fits,
    left_out,
    reported,
    table,
)
from stream_engine.exports.summary import summary_of
from stream_engine.report.findings.words import listing
from stream_engine.state.artifact import figure
from stream_engine.state.published import Published
from stream_engine.state.snapshot import triplet_columns


class Commands(NamedTuple):
    """How a person asks further: the state, and the report command that was typed where it read SOURCE... itself.
    `read_by`: the input options of SOURCE..., as they are typed; `in_use`: a run is at work on the state, and fits what
    is missing; `lists`: what is written lists participants; `doubts`: what reading said of rows that count, and perhaps
    should not; `out`: the file of the page of a state, where it was named."""

    state: str = "DIR"
    typed: str = ""
    in_use: bool = False
    lists: bool = False
    read_by: str = ""
    doubts: tuple[str, ...] = ()
    out: str = ""

    def refit(self, kind: str) -> str:
        """The command that fits a model; "" while a run does."""
        return "" if self.in_use else f"stream-engine refit --state {self.state} {kind}"

    @property
    def awaited(self) -> str:
        """What to say of a missing model that a run is about to fit; "" where none is at work."""
        if not self.in_use:
            return ""
        if self.typed:
            return "A fit is running; this page is written again when it ends."
        return "A run is at work on this state, and fits it unless its settings say otherwise."

    def how_to_fit(self, kind: str) -> str:
        """A note about a missing model: the command that fits it, or that a run does."""
        return self.awaited or f"To fit it: {self.refit(kind)}"

    @property
    def report(self) -> str:
        """The command that makes the page, for further options."""
        out = f" --out {shlex.quote(self.out)}" if self.out else ""
        return self.typed or f"stream-engine report --state {self.state}{out}"

    @property
    def lists_participants(self) -> bool:
        return self.lists or not {"--participants", "--workers"}.isdisjoint(self.typed.split())


DEFAULT_COMMANDS = Commands()


class Facts:
    """`commands`: for what a person may do next; `noted`: what counts alone predict, as the last refit noted it.

    Everything is computed when it is first asked for. Cost: O(questions), and a second where `noted` is not there.
    """

    def __init__(
        self,
        published: Published,
        commands: Commands = DEFAULT_COMMANDS,
        noted: Mapping[str, Any] = MappingProxyType({}),
    ):
        self.published, self.commands, self._noted = published, commands, noted
        if self.copies_counted and commands.typed:  # whatever is typed next, copies are not counted again
            both = (commands.typed, commands.read_by)
            typed, read_by = (f"{text} --drop-duplicates".strip() for text in both)
            self.commands = commands._replace(typed=typed, read_by=read_by)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The figures of the snapshot, by the contract's names."""
        return summary_of(self.published.snapshot)

    @property
    def read_as(self) -> Mapping[str, Any]:
        """The input options that the state remembers; empty where it knows none."""
        options = self.published.snapshot.counters.get("input", {}).get("options")
        return options if isinstance(options, dict) else {}

    @property
    def copies_dropped(self) -> int:
        """How many responses that were sent twice are not counted again."""
        return int(self.published.snapshot.counters.get("repeated", 0)) if self.read_as.get("drop_duplicates") else 0

    @property
    def copies_counted(self) -> int:
        """How many responses that were sent twice are counted again."""
        return int(self.published.snapshot.counters.get("repeated", 0)) - self.copies_dropped

    @cached_property
    def answers(self) -> int | None:
        """How many answers there are as people gave them, a ranking being one; None where some were deleted or excluded
        and the others are known by their comparisons alone."""
        summary = self.summary
        if not (summary.get("forgotten") or self.published.excluded):
            return int(summary["events"] - summary["kinds"].get("label", 0))
        responses = kept_responses(self.published.snapshot)
        return int(responses.times.sum()) if responses is not None and responses.complete else None

    @property
    def sources(self) -> str:
        """The files that were read, as they are typed; "" where there are none, as with Kafka."""
        positions = self.published.snapshot.positions
        paths = [split_uri(name)[1] for name in positions if not name.startswith("labels:") and os.path.isabs(name)]
        return shlex.join(path if (near := os.path.relpath(path)).startswith("..") else near for path in paths)

    @property
    def preview(self) -> str:
        """The command that shows how the files were read."""
        return f"stream-engine preview {self.sources or 'SOURCE'}"

    def on_a_state(self, command: str) -> str:
        """A command that needs a state, after the one that makes it: a report of SOURCE... leaves none behind."""
        if not self.commands.typed:
            return command
        how = f" {self.commands.read_by}" if self.commands.read_by else ""
        return f"stream-engine run {self.sources or 'SOURCE'} --state {self.commands.state}{how} && {command}"

    def report(self, kind: str) -> Mapping[str, Any]:
        """What the refit of that kind reported; empty where there is none."""
        artifact = self.published.artifacts.get(kind)
        return artifact.report if artifact is not None else {}

    @cached_property
    def models(self) -> list[dict[str, Any]]:
        """The table of models, the best first; empty without artifacts."""
        return table(self.published, self._noted) if self.published.artifacts else []

    @property
    def models_left_out(self) -> str | None:
        """Which models are not in the table because they would cost too much."""
        if not self.published.artifacts:
            return None
        if fits(self.published, self._noted):
            return self._noted.get("left_out")
        return left_out(self.published)

    @property
    def best(self) -> dict[str, Any] | None:
        """The row of the model that is reported: the embedding, which makes the map, unless others have a significantly
        higher accuracy; of these, or without an embedding, the one with the least log loss. So the luck of the best of
        several models is not reported. Baselines know nothing of objects, and are no models."""
        return reported(self.models, self.published.artifacts)

    @property
    def beats_chance(self) -> bool | None:
        """Whether the reported model's accuracy on held-out answers is above one half, by a one-sided 99 % bound that
        is corrected for choosing the best of several (Bonferroni); None where too little was held out to say, or all
        answers are to one question, which every model predicts as it was answered before."""
        if self.n_questions == 1:
            return None
        return beats_chance(self.models, self.published.artifacts)

    @cached_property
    def n_questions(self) -> int | None:
        """How many different questions were answered; None where these are not counted."""
        snapshot = self.published.snapshot
        if not snapshot.section("triplet_counts"):
            return None
        quadruplets = snapshot.section("quadruplet_counts")
        if self.summary["quadruplets"] and not quadruplets:
            return None
        return len(triplet_columns(snapshot).anchor) + (len(quadruplets["i"]) if quadruplets else 0)

    @cached_property
    def preferred_position(self) -> PreferredPosition | None:
        """The position at which the chosen object was more often than by chance; else None."""
        return preferred_position(self.published.snapshot)

    @cached_property
    def better_baseline(self) -> dict[str, Any] | None:
        """The row of a baseline that predicts better than every model; else None."""
        return better_baseline(self.models)

    @cached_property
    def above_chance(self) -> dict[str, Any] | None:
        """The row of the best model that predicts better than chance where the reported one does not; else None."""
        return best_above_chance(self.models, self.published.artifacts) if self.beats_chance is False else None

    @property
    def at_chance(self) -> str:
        """Who predicts answers no better than chance, after which nothing is said of the map."""
        if self.above_chance is None and self.better_baseline is None:
            return "no model predicts"
        return f"the {self.best_name} does not predict"

    @property
    def best_name(self) -> str:
        """What the reported model is called."""
        return str((self.best or {}).get("model", "model")).replace("_", " ")

    @property
    def held_out(self) -> int:
        """How many comparisons the best model was tested on; 0 where it does not say so."""
        return int((self.best or {}).get("comparisons") or 0)

    @property
    def ceiling(self) -> Mapping[str, Any]:
        """Agreement and noise ceiling, as the first refit reports them that knows most of it; empty where none does."""
        reports = [artifact.report.get("ceiling") for artifact in self.published.artifacts.values()]
        known = ("others", "themselves")
        return max(
            (ceiling for ceiling in reports if isinstance(ceiling, Mapping)),
            key=lambda ceiling: [figure(ceiling, name) is not None for name in known],
            default={},
        )

    @cached_property
    def sets(self) -> np.ndarray | None:
        """(n,) which set of objects that were compared with each other each object is in, see
        `evaluation.connection.components`."""
        return components(self.published.snapshot)

    @cached_property
    def comparisons_by_object(self) -> np.ndarray | None:
        """(n,) comparisons of each object; None where they are not counted by object."""
        return comparisons_by_object(self.published.snapshot)

    @cached_property
    def too_few(self) -> np.ndarray:
        """(n,) bool: objects with too few comparisons to be placed; those without any are on no map."""
        comparisons, n = self.comparisons_by_object, len(self.published.snapshot.objects)
        return too_few(comparisons, n) & (comparisons is None or comparisons > 0)

    @cached_property
    def joined_by_one_object(self) -> JoiningObject | None:
        """The object without which the others fall into two sets; None where there is none."""
        return joining_object(self.published.snapshot)

    @property
    def connected(self) -> bool:
        """Whether no object is known to be in another set than the rest."""
        return are_connected(self.sets)

    @cached_property
    def questions_across(self) -> int:
        """How many different questions are about objects of several sets."""
        return 0 if self.sets is None or self.connected else questions_across(self.published.snapshot, self.sets)

    @property
    def apart(self) -> str:
        """What separates the sets, after "sets that"."""
        if not (across := self.questions_across):
            return "were never compared with each other"
        return f"are joined by only {amount(across, 'question')}"

    @property
    def positions_comparable(self) -> bool:
        """Whether the positions of all objects can be compared: a model beats chance, as far as is known, and the
        objects are connected. Nothing is said of clusters, axes or the whole map otherwise."""
        return self.connected and self.beats_chance is not False

    @property
    def cluster_answer(self) -> Mapping[str, Any]:
        """The report of the refit `clusters`, whose grade is "cannot tell" where clusters are not assessed; empty where
        there is none."""
        report = self.report("clusters")
        return gated(report, self.connected, self.beats_chance) if report else report

    @cached_property
    def participants(self) -> ParticipantChecks | None:
        """Every named participant with the checks of their answers; None where events name nobody."""
        return check_participants(self.published, bool(self.beats_chance))

    @cached_property
    def copied(self) -> list[CopiedParticipant]:
        """Participants whose responses are those of another one."""
        return copied_participants(kept_responses(self.published.snapshot))

    @property
    def who_counts_too(self) -> str:
        """A clause beside a figure that counts answers of participants who are flagged, or copies; else empty."""
        checks, parts = self.participants, []
        if checks is not None and checks.flagged and len(checks.names) >= MIN_PARTICIPANTS:
            parts.append(amount(checks.flagged, "flagged participant"))
        if self.copied:
            parts.append(amount(len(self.copied), "copied participant"))
        return f"{listing(parts)} included" if parts else ""
