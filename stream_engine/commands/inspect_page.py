"""What `inspect` tells a scientist: what was counted, how consistent it is, how well models do, whether there are
clusters, what is missing. A word that is not everybody's is explained where it stands. `inspect --all` has all figures.

Reports of artifacts and notes of runs are files that anybody may have changed: what is no number there is not told.
"""

import os
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from connectors.files.readers import KINDS
from stream_engine.commands.inspect_text import aligned, predictions, short
from stream_engine.exports.in_words import FEWEST_PEOPLE, models_explained, p_explained
from stream_engine.state.artifact_figures import figure

FEW = 20  # held-out answers, below which a share of them says nothing
MOST = 5  # partitions that are listed
WIDE = 116  # letters of an explanation in a line


def as_page(contents: Mapping[str, Any]) -> str:
    """What `inspect` found, as a page."""
    sections = {
        f"State {contents['state']}, snapshot {contents['summary']['snapshot']}": _counted(contents),
        "How consistent the answers are": _consistent(contents),
        "How well models foretell answers that they never had": _models(contents),
        "Clusters": _clusters(contents),
        "Also fitted": _others(contents),
        "Predictions before learning": predictions(contents.get("progressive", {})),
        "What is missing": _missing(contents),
    }
    told = ["\n".join([title, *(f"  {line}" for line in lines)]) for title, lines in sections.items() if lines]
    return "\n\n".join([*told, f"All figures: stream-engine inspect --state {contents['state']} --all"])


def _counted(contents: Mapping[str, Any]) -> list[str]:
    summary = contents["summary"]
    names = {kind.replace("_", "-"): n for kind, n in summary["kinds"].items()}
    kinds = ", ".join(f"{n:,} {name}" for name, n in names.items()) if len(names) > 1 else "".join(names)
    different = summary["unique_triplets"] - summary["contradicting_pairs"]
    refused = sum(summary["rejected"].values())
    rows = {
        "events": f"{summary['events']:,}" + (f" ({kinds})" if kinds else ""),
        "refused": ", ".join(f"{n:,} {reason}" for reason, n in summary["rejected"].items()) if refused else "none",
        "left out": f"{summary['filtered']:,} by --where" if summary["filtered"] else "",
        "objects": f"{summary['objects']:,}"
        + (f", {summary['labelled_objects']:,} of them with a label" if summary["labelled_objects"] else ""),
        "people": f"{contents['workers']:,}" if contents.get("workers") else "",
        "comparisons": f'{summary["comparisons"]:,} ("this pair is nearer than that one"; an event holds one or more)',
        "questions": f"{different:,} different ones (an anchor and two others, whatever was answered)",
        "judgements": _kept(contents.get("judgements")),
        "read": _positions(summary["positions"]),
    }
    lost = {name: short(value) for name, value in summary.items() if name in ("lost", "share", "forgotten")}
    deeds = [("history", short(deed)) for deed in summary.get("history", ())]
    return aligned([*((name, text) for name, text in (rows | lost).items() if text), *deeds])


def _kept(kept: Any) -> str:
    if not kept:
        return ""
    whole = "all of them" if kept["complete"] else f"a sample, {kept['comparisons']:,} of {kept['of']:,} comparisons"
    return f"{kept['kept']:,} (what one person said in one go) are kept whole, {whole}"


def _positions(positions: Mapping[str, int]) -> str:
    told = [f"{name} up to {_place(name, offset)}" for name, offset in list(positions.items())[:MOST]]
    return ", ".join(told) + (f" and {len(positions) - MOST:,} more" if len(positions) > MOST else "")


def _place(partition: str, offset: int) -> str:
    """How far a partition was read: the bytes of a file's text are counted as they are decoded, not as they are stored.

    >>> _place("/data/survey.csv.gz", 1200), _place("/data/x.parquet", 30), _place("comparisons/0", 7)
    ('byte 1,200 of its text in UTF-8', 'row 30', 'message 7')
    """
    if not os.path.isabs(partition.removeprefix("labels:")):
        return f"message {offset:,}"
    kind = KINDS.get(os.path.splitext(partition.lower())[1])
    return f"row {offset:,}" if kind in ("parquet", "arrow") else f"byte {offset:,} of its text in UTF-8"


def _consistent(contents: Mapping[str, Any]) -> list[str]:
    summary, ceiling = contents["summary"], _ceiling(contents)
    lines = []
    if summary["triplets"]:
        lines.append(f"{summary['contradicting_pairs']:,} questions were answered both ways")
    others, own, most = (figure(ceiling, name) for name in ("others", "themselves", "at_most"))
    if others is not None:
        answers = figure(ceiling, "answers")
        lines.append(
            f"an answer is that of most others to the same question {_percent(others)} of the time"
            + (f" ({answers:,.0f} answers)" if answers else "")
        )
    if most is not None:
        lines.append(f"a model that answers alike for everybody can be right {_percent(most)} of the time at most")
    if own is not None:
        lines.append(f"the same person, asked again, says the same {_percent(own)} of the time")
    verdicts = ("accepted", "duplicate", "contradiction", "cycle")
    kept, again, one, several = (summary["guard"].get(verdict, 0) for verdict in verdicts)
    if one + several:
        lines.append(
            f"the partial order keeps {kept:,} comparisons, {again:,} repeat one of them; it leaves out "
            f"{one:,} against one of them and {several:,} that close a cycle with several"
        )
        lines.append("map, clusters and similarities are made of all answers")
    return lines


def _ceiling(contents: Mapping[str, Any]) -> Mapping[str, Any]:
    """How far people agree, as the first model says that says it."""
    reports = [artifact["report"].get("ceiling") for artifact in contents["artifacts"].values()]
    return next((each for each in reports if isinstance(each, Mapping) and figure(each, "others") is not None), {})


def _models(contents: Mapping[str, Any]) -> list[str]:
    rows = contents.get("models", [])
    if not rows:
        return []
    artifacts = contents["artifacts"]
    reports = [artifacts[row["model"]]["report"] for row in rows if row["model"] in artifacts]
    held_out = max((figure(report, "held_out_comparisons") or 0 for report in reports), default=0)
    heads = {"accuracy": "right", "standard_error": "±", "log_loss": "log loss", "seconds": "CPU s"}
    if any(row["accuracy_by_worker"] is not None for row in rows):
        heads = heads | {"accuracy_by_worker": "new people"}
    shown = [{name: _cell(name, row[name]) for name in heads} for row in rows]
    width = {name: max(len(head), *(len(cells[name]) for cells in shown)) for name, head in heads.items()}
    names = max(len("people, at most"), *(len(row["model"]) for row in rows))

    def line(model: str, cells: Mapping[str, str]) -> str:
        return (f"{model:{names}}" + "".join(f"   {cells[name]:>{width[name]}}" for name in heads)).rstrip()

    lines = [line("", heads), *(line(row["model"], cells) for row, cells in zip(rows, shown))]
    most = next((row["ceiling_at_most"] for row in rows if row["ceiling_at_most"] is not None), None)
    if most is not None:
        lines.append(line("people, at most", dict.fromkeys(heads, "") | {"accuracy": _percent(most)}))
    of = f" of {held_out:,.0f} held-out answers" if held_out else ""
    lines.append(
        f"right: share{of} that come as foretold; ±: with 95 % sureness; log loss: in nats an answer, .693 a coin"
    )
    lines += wrap(models_explained(row["model"] for row in rows), WIDE)
    if 0 < held_out < FEW:
        lines.append(f"too few answers to say: only {held_out:,.0f} could be held out")
    return lines


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name == "standard_error":
        return _percent(1.96 * value)
    return _percent(value) if name.startswith("accuracy") else f"{value:.1f}" if name == "seconds" else f"{value:.3f}"


def _clusters(contents: Mapping[str, Any]) -> list[str]:
    artifact = contents["artifacts"].get("sdp_clustering")
    if artifact is None:
        return []
    report = artifact["report"]
    note = report.get("note") or report.get("verdict")
    lines = [str(note)[:500]] if note else []
    params = artifact.get("params")
    lines += wrap(p_explained(report, params if isinstance(params, Mapping) else {}), WIDE)
    sizes = report.get("sizes")
    if isinstance(sizes, Mapping) and sizes:
        lines.append(f"sizes of the groups: {', '.join(short(size) for size in list(sizes.values())[:20])}")
    return lines


def _others(contents: Mapping[str, Any]) -> list[str]:
    rows = {}
    for kind, artifact in contents["artifacts"].items():
        report = artifact["report"]
        d, least = figure(report, "d"), figure(report, "dimensions_at_least")
        if kind == "embedding" and d is not None:
            told = f"a map of {d:.0f} {'dimension' if d == 1 else 'dimensions'}"
            told += f" (the answers show {least:.0f} at least)" if least is not None else ""
            guess, people = _guessing(contents)
            told += (
                f"; {f'{guess:,}' if guess else 'nobody'} of {people:,} people seem{'' if guess > 1 else 's'} to guess"
                if people
                else ""
            )
        elif kind == "sdp_clustering":
            continue
        else:
            accuracy = figure(report, "accuracy")
            told = f"{_percent(accuracy)} right on what it never had" if accuracy is not None else "made"
            if kind == "reliability":
                told = f"how often each is right: stream-engine export --state {contents['state']} --out DIR workers"
            told = f"{told}; {str(report['note'])[:300]}" if report.get("note") else told
        behind = contents["summary"]["snapshot"] - artifact["snapshot"]
        rows[f"{kind} (snapshot {artifact['snapshot']})" if behind else kind] = told
    if _guessing(contents)[0]:
        rows["who guesses"] = f"stream-engine report --state {contents['state']} --workers --out report.html"
    return aligned(rows.items())


def _guessing(contents: Mapping[str, Any]) -> tuple[int, int]:
    """How many of how many people seem to guess, as the report counts them; of few people nothing is told."""
    found = contents.get("guessing", {"guess": 0, "people": 0})
    return (found["guess"], found["people"]) if found["people"] >= FEWEST_PEOPLE else (0, 0)


def _missing(contents: Mapping[str, Any]) -> list[str]:
    return list(_lacks(contents))


def _lacks(contents: Mapping[str, Any]) -> Iterator[str]:
    summary, artifacts, state = contents["summary"], contents["artifacts"], contents["state"]
    if not summary["comparisons"]:
        yield "nothing was compared yet"
        return
    if refused := sum(summary["rejected"].values()):
        yield f"{refused:,} refused events; why: stream-engine dead-letters --state {state} show"
    for kind, what in (("embedding", "no map, and no model of it"), ("sdp_clustering", "no clusters")):
        if kind not in artifacts:
            yield f"{what}; make it: stream-engine refit --state {state} {kind}"
    if "embedding" in artifacts and not _ceiling(contents):
        yield "how far people agree: hardly any question was answered more than once; ask some again"
    if not contents.get("workers"):
        yield "who answered: events name no worker, and nobody knows who guesses (--columns worker=...)"
    if old := [kind for kind, artifact in artifacts.items() if artifact["snapshot"] < summary["snapshot"]]:
        yield f"the newest answers in {', '.join(old)}: of an earlier snapshot"
    if without := contents.get("models_left_out"):
        yield f"in the table of models: {without}"


def _percent(share: float | None, digits: int = 1) -> str:
    return "unknown" if share is None else f"{100.0 * share:.{digits}f} %"
