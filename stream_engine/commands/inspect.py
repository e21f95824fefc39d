"""`stream-engine inspect`: what is in a state, for people and for programs. Takes no lock; a run may be at work."""

import json
from typing import Any

import click

from stream_engine.commands import state_option
from stream_engine.commands.inspect_page import as_page
from stream_engine.commands.inspect_text import as_text
from stream_engine.data.packed_names import unpack_names
from stream_engine.exports.in_words import guessers
from stream_engine.exports.models import COUNTS_TOLD, fits, left_out, table
from stream_engine.exports.summary import summary_of
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store
from stream_engine.statistics.judgements import judgements_of


@click.command("inspect")
@state_option
@click.option("--all", "everything", is_flag=True, help="Every figure, a line each, by the names of --json.")
@click.option("--json", "as_json", is_flag=True, help="Every figure, for programs.")
def command(state: str, everything: bool, as_json: bool) -> None:
    """What is in the state: what was counted, how consistent it is, models, clusters, what is missing."""
    contents = inspect(state)
    if as_json:
        click.echo(json.dumps(contents, indent=1, ensure_ascii=False))
    else:
        click.echo(as_text(contents) if everything else as_page(contents))


def inspect(state: str) -> dict[str, Any]:
    """What is in the state: the summary, the kept snapshots, the artifacts with their reports, how predictions went."""
    store = Store(state)
    published = store.published()
    return {
        "state": str(store.directory),
        "snapshots": store.sequences(),
        "digest": published.snapshot.digest,
        "settings": published.snapshot.settings,
        "artifacts": {
            kind: {
                "snapshot": artifact.sequence,
                "seed": artifact.seed,
                "params": artifact.params,
                "report": artifact.report,
            }
            for kind, artifact in published.artifacts.items()
        },
        **_models(published, store.noted(COUNTS_TOLD)),
        "progressive": store.noted("progressive"),
        "summary": summary_of(published.snapshot),
        "workers": _workers(published.snapshot),
        **_guessing(published),
        **({"judgements": told} if (told := _judgements(published.snapshot)) else {}),
    }


def _workers(snapshot: Snapshot) -> int | None:
    """How many workers events name; None where that is not kept."""
    votes = snapshot.section("worker_votes")
    return sum(map(bool, unpack_names(votes["utf8"], votes["offsets"]))) if votes else None


def _guessing(published: Published) -> dict[str, dict[str, int]]:
    """How many of the people whom the embedding knows by name seem to guess."""
    artifact = published.artifacts.get("embedding")
    guess, people = guessers(artifact.arrays) if artifact else (0, 0)
    return {"guessing": {"guess": guess, "people": people}} if people else {}


def _models(published: Published, noted: dict[str, Any]) -> dict[str, Any]:
    """How well each model answers; what counts alone tell as the last refit `noted` it, so that looking loads no
    compiler. Nothing of a state without artifacts."""
    if not published.artifacts:
        return {"models": []}
    without = noted.get("left_out") if fits(published, noted) else left_out(published)
    return {"models": table(published, noted), **({"models_left_out": without} if without else {})}


def _judgements(snapshot: Snapshot) -> dict[str, Any]:
    """How many whole judgements are kept, the same one as often as it was given, and how many of the comparisons these
    are."""
    kept = judgements_of(snapshot)
    if kept is None:
        return {}
    return {
        "kept": int(kept.times.sum()),
        "comparisons": int(kept.times[kept.judgement].sum()),
        "of": snapshot.counters["comparisons"],
        "complete": kept.complete,
    }
