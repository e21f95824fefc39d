"""`stream-engine inspect`: what is in a state, for people and for programs. Takes no lock; a run may be at work.

Reports of artifacts and notes of runs are files that anybody may have changed: what is no number there is not shown.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap
from typing import Any

import click

from connectors import split_uri
from connectors.files.readers import KINDS
from connectors.files.streams import CODECS
from stream_engine.commands import state_option
from stream_engine.data.packed_names import unpack_names
from stream_engine.evaluation.kept_responses import kept_responses
from stream_engine.exports.clusters import reports
from stream_engine.exports.models import COUNTS_TOLD
from stream_engine.report.findings import Finding, findings, warnings
from stream_engine.report.findings.facts import Commands, Facts
from stream_engine.report.findings.models import explained
from stream_engine.report.findings.words import percent
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store

MAX_PARTITIONS_LISTED = 5  # partitions that are listed
LINE_WIDTH = 116  # letters in a line
TITLES = {  # of topics, in the order of the page
    "excluded": "Excluded participants",
    "accuracy": "Prediction accuracy",
    "agreement": "Agreement",
    "participants": "Participants",
    "map": "Map",
    "differences": "Who sees it differently",
    "clusters": "Clusters",
    "order": "Partial order",
}


@click.command("inspect")
@state_option
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output: every figure and every finding.")
def command(state: str, as_json: bool) -> None:
    """Show what a state holds: data quality, prediction accuracy, agreement, clusters, what is missing."""
    contents = inspect(state)
    click.echo(json.dumps(contents, indent=1, ensure_ascii=False) if as_json else as_page(contents))


def inspect(state: str) -> dict[str, Any]:
    """Every figure of a state by name: the summary, the kept snapshots, refits with their reports, models, findings."""
    store = Store(state)
    published = store.published()
    facts = Facts(published, Commands(str(store.directory), in_use=store.in_use), store.noted(COUNTS_TOLD))
    statements, reports_of = findings(facts), reports(published)
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
                "report": reports_of[kind],
            }
            for kind, artifact in published.artifacts.items()
        },
        "models": facts.models,
        **({"models_left_out": omitted} if (omitted := facts.models_left_out) else {}),
        "findings": {topic: [_as_json(finding) for finding in lines] for topic, lines in statements.items()},
        "warnings": [finding.what for finding in warnings(statements)],
        "progressive": store.noted("progressive"),
        "summary": facts.summary,
        "workers": _participants(published.snapshot),
        **({"judgements": responses} if (responses := _responses(published.snapshot)) else {}),
    }


def _as_json(finding: Finding) -> dict[str, Any]:
    return {**finding._asdict(), "figures": dict(finding.figures)}


def _participants(snapshot: Snapshot) -> int | None:
    """How many participants events name; None where that is not kept."""
    votes = snapshot.section("worker_votes")
    return sum(map(bool, unpack_names(votes["utf8"], votes["offsets"]))) if votes else None


def _responses(snapshot: Snapshot) -> dict[str, Any]:
    """How many whole responses are kept, the same one as often as it was given, and of how many comparisons."""
    responses = kept_responses(snapshot)
    if responses is None:
        return {}
    return {
        "kept": int(responses.times.sum()),
        "comparisons": int(responses.times[responses.judgement].sum()),
        "of": snapshot.counters["comparisons"],
        "complete": responses.complete,
    }


def as_page(contents: Mapping[str, Any]) -> str:
    """What `inspect` found, as a page."""
    statements = contents["findings"]
    wrong = [finding for topic in statements.values() for finding in topic if finding["level"] == "warning"]
    sections: dict[str, list[str]] = {
        f"State {contents['state']}, snapshot {contents['summary']['snapshot']}": _count_lines(contents),
        "Data quality": list(_lines(wrong)) or ["No problem was found."],
    }
    for topic, title in TITLES.items():
        lines = list(_lines(finding for finding in statements[topic] if finding["level"] == "result"))
        sections[title] = lines + (_models(contents["models"]) if topic == "accuracy" else [])
    sections["Also fitted"] = _others(contents)
    sections["Progressive validation"] = predictions(contents["progressive"])
    missing = [finding for topic in statements.values() for finding in topic if finding["level"] == "gap"]
    sections["Missing information"] = list(_lines(missing))
    parts = ["\n".join([title, *(f"  {line}" for line in lines)]) for title, lines in sections.items() if lines]
    return "\n\n".join([*parts, f"All figures: stream-engine inspect --state {contents['state']} --json"])


def _lines(statements: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for finding in statements:
        yield from wrap(finding["text"], LINE_WIDTH, break_long_words=False, break_on_hyphens=False)
        if finding["command"]:
            yield f"    {finding['command']}"


def _count_lines(contents: Mapping[str, Any]) -> list[str]:
    summary = contents["summary"]
    names = {kind.replace("_", "-"): n for kind, n in summary["kinds"].items()}
    kinds = ", ".join(f"{n:,} {name}" for name, n in names.items()) if len(names) > 1 else "".join(names)
    questions = summary["unique_triplets"] - summary["contradicting_pairs"]
    labelled = f" ({summary['labelled_objects']:,} with a label)" if summary["labelled_objects"] else ""
    deleted = "; some were deleted since" if summary.get("forgotten") else ""
    rows = {
        "events": f"{summary['events']:,} read" + (f" ({kinds})" if kinds else "") + deleted,
        "rejected": f"{sum(summary['rejected'].values()):,}",
        "filtered": f"{summary['filtered']:,} by --where or because they are catch trials"
        if summary["filtered"]
        else "",
        "objects": f"{summary['objects']:,}{labelled}",
        "participants": f"{contents['workers']:,}" if contents["workers"] else "",
        "comparisons": f"{summary['comparisons']:,} (one event can hold several)",
        "questions": f"{questions:,} distinct (an anchor and two other objects)",
        "responses": _sample_size(contents.get("judgements")),
        "read": _positions(summary["positions"]),
    }
    rows |= {name: short(value) for name, value in summary.items() if name in ("lost", "share", "forgotten")}
    history = [("history", short(entry)) for entry in summary.get("history", ())]
    return aligned([*((name, text) for name, text in rows.items() if text), *history])


def _sample_size(sample: Mapping[str, Any] | None) -> str:
    if not sample:
        return ""
    whole = (
        "all of them" if sample["complete"] else f"a sample: {sample['comparisons']:,} of {sample['of']:,} comparisons"
    )
    return f"{sample['kept']:,} stored ({whole})"


def _positions(positions: Mapping[str, int]) -> str:
    lines = [f"{name} up to {_place(name, offset)}" for name, offset in list(positions.items())[:MAX_PARTITIONS_LISTED]]
    return ", ".join(lines) + (
        f" and {len(positions) - MAX_PARTITIONS_LISTED:,} more" if len(positions) > MAX_PARTITIONS_LISTED else ""
    )


def _place(partition: str, offset: int) -> str:
    """How far a partition was read; bytes of compressed or recoded text are counted after decoding.

    >>> _place("/data/survey.csv.gz", 1200), _place("s3://data/x.parquet", 30), _place("comparisons/0", 7)
    ('byte 1,200 of the decompressed text', 'row 30', 'message 7')
    """
    scheme, name = split_uri(partition.removeprefix("labels:"))
    if scheme == "deltas":
        return f"batch {offset:,}"
    if scheme == "file" and not os.path.isabs(name):
        return f"message {offset:,}"
    suffix = os.path.splitext(name.partition("?")[0].lower() if scheme.startswith("http") else name.lower())[1]
    if KINDS.get(suffix) in ("parquet", "arrow", "npy"):
        return f"row {offset:,}"
    return f"byte {offset:,}" + (" of the decompressed text" if suffix in CODECS else "")


def _models(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each model, the best first, on held-out answers."""
    if not rows:
        return []
    heads = {"accuracy": "accuracy", "standard_error": "± 95 % CI", "log_loss": "log loss", "seconds": "CPU s"}
    if any(row["accuracy_by_worker"] is not None for row in rows):
        heads = heads | {"accuracy_by_worker": "new participants"}
    table = [{name: _cell(name, row[name]) for name in heads} for row in rows]
    width = {name: max(len(head), *(len(cells[name]) for cells in table)) for name, head in heads.items()}
    names = max(len(row["model"]) for row in rows)

    def line(model: str, cells: Mapping[str, str]) -> str:
        return (f"{model:{names}}" + "".join(f"   {cells[name]:>{width[name]}}" for name in heads)).rstrip()

    lines = ["", line("", heads), *(line(row["model"], cells) for row, cells in zip(rows, table))]
    lines.append("log loss: nats per answer (chance: 0.693); -: unknown")
    return lines + wrap(explained(row["model"] for row in rows), LINE_WIDTH)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name == "standard_error":
        return percent(1.96 * value)
    return percent(value) if name.startswith("accuracy") else f"{value:.1f}" if name == "seconds" else f"{value:.3f}"


def _others(contents: Mapping[str, Any]) -> list[str]:
    """Refits that no topic is about, each with what it noted."""
    rows = {}
    for kind, artifact in contents["artifacts"].items():
        if kind in ("embedding", "clusters"):
            continue
        accuracy, note = artifact["report"].get("accuracy"), artifact["report"].get("note")
        text = f"accuracy {percent(accuracy)} on held-out data" if type(accuracy) is float else "fitted"
        rows[f"{kind} (snapshot {artifact['snapshot']})"] = f"{text}; {str(note)[:300]}" if note else text
    return aligned(rows.items())


def predictions(figures: Mapping[str, Any]) -> list[str]:
    """How predictions before learning went, as a run noted it in a file that is no part of the state."""
    try:
        return _predictions(figures)
    except (LookupError, TypeError, ValueError, AttributeError):
        return ["progressive.json is not valid; delete it"]


def _predictions(figures: Mapping[str, Any]) -> list[str]:
    """A line for each predictor and type of event: in total and recently."""
    if not figures:
        return []
    lines = [
        f"until snapshot {figures['snapshot']}; {figures['sampled']:,} of {figures['seen']:,} comparisons sampled",
        f"{'predictor':24}{'type':14}{'tested':>10}{'accuracy':>10}{'recently':>10}{'log loss':>10}"
        f"{'calibration error':>19}",
    ]
    for name, kinds in figures["predictors"].items():
        for kind, windows in kinds.items():
            if kind == "all" or len(kinds) > 2:
                total, recent = windows["total"], windows["rolling"]
                lines.append(
                    f"{name:24}{kind:14}{total['tested']:10,}{total['accuracy']:10.3f}{recent['accuracy']:10.3f}"
                    f"{recent['log_loss']:10.3f}{recent['calibration_error']:19.3f}"
                )
    alarms = ", ".join(f"{signal} {state['alarms']}" for signal, state in figures["drift"].items())
    return [*lines, *([f"drift alarms: {alarms}"] if alarms else [])]


def aligned(rows: Iterable[tuple[str, str]]) -> list[str]:
    """A line a row, its text in a column of its own."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0) + 2
    return [f"{name:{max(width, 14)}}{text}" for name, text in rows]


def short(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "  ".join(f"{k}={short(v)}" for k, v in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(short, value[:8])) + (" …" if len(value) > 8 else "") or "-"
    if value is None:
        return "unknown"
    return f"{value:.6g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
