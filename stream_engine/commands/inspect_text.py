"""All that `inspect --all` and `refit` print: one figure a line, by the names of JSON."""

from collections.abc import Iterable
from typing import Any


def as_text(contents: dict[str, Any]) -> str:
    """What `inspect` found, for people: the summary, the artifacts' reports, how predictions went."""
    lines = [f"state       {contents['state']}", f"snapshots   {', '.join(map(str, contents['snapshots']))}"]
    for key, value in contents["summary"].items():
        if key == "history":
            lines += [f"{'history':24}{short(deed)}" for deed in value]
        else:
            lines.append(f"{key:23} {short(value)}")
    if kept := contents.get("judgements"):
        whole = "all" if kept["complete"] else "a sample by content"
        told = f"{kept['kept']:,}, with {kept['comparisons']:,} of {kept['of']:,} comparisons ({whole})"
        lines.append(f"{'judgements kept':24}{told}")
    for kind, artifact in contents["artifacts"].items():
        lines.append(f"{kind} (snapshot {artifact['snapshot']})")
        lines += [f"  {key:21} {short(value)}" for key, value in _said(artifact["report"]).items()]
    models = _models(contents.get("models", []), contents.get("models_left_out"))
    return "\n".join(lines + models + predictions(contents.get("progressive", {})))


def aligned(rows: Iterable[tuple[str, str]]) -> list[str]:
    """A line a row, what is said of it in a column of its own."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0) + 2
    return [f"{name:{max(width, 12)}}{text}" for name, text in rows]


def _said(report: dict[str, Any]) -> dict[str, Any]:
    """A report as people read it: what it has to say comes first, and a solved program is not called certified, which
    reads as if what it found were true."""
    first = {key: report[key] for key in ("note",) if report.get(key)}
    hidden = {"certified", "certified_by"} if "solved" in report else set()
    return first | {key: value for key, value in report.items() if key not in first and key not in hidden}


def _models(rows: list[dict[str, Any]], without: str | None) -> list[str]:
    """A line for each model, the best first: how well it answers what it never had."""
    if not rows:
        return []
    heads = {
        "accuracy": "accuracy",
        "standard_error": "± error",
        "accuracy_by_worker": "by worker",
        "standard_error_by_worker": "± error",
        "workers": "workers",
        "log_loss": "log loss",
        "calibration_error": "calibration error",
        "ceiling": "ceiling",
        "ceiling_at_most": "at most",
        "seconds": "CPU seconds",
    }
    width = {name: max(len(head), 6) + 3 for name, head in heads.items()}

    def line(model: str, cells: dict[str, str]) -> str:
        return f"  {model:26}" + "".join(f"{cells[name]:>{width[name]}}" for name in heads)

    said = [line(row["model"], {name: _cell(name, row[name]) for name in heads}) for row in rows]
    return [
        "models on answers that they never had (-: unknown)",
        line("model", heads),
        *said,
        *([f"  {without}"] if without else []),
    ]


def _cell(name: str, value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if name == "workers" else f"{value:.3f}"


def predictions(figures: dict[str, Any]) -> list[str]:
    """How predictions went, as a run noted it in a file that anybody may have changed: it is no part of the state."""
    try:
        return _predictions(figures)
    except (LookupError, TypeError, ValueError, AttributeError):
        return ["predictions: progressive.json holds no figures of a run; remove it"]


def _predictions(figures: dict[str, Any]) -> list[str]:
    """A line for each predictor and kind of judgement: before learning, in total and recently."""
    if not figures:
        return []
    lines = [
        f"predictions before learning (until snapshot {figures['snapshot']}; "
        f"{figures['sampled']:,} of {figures['seen']:,} drawn)",
        f"  {'predictor':24}{'kind':14}{'tested':>10}{'accuracy':>10}{'recently':>10}{'log loss':>10}"
        f"{'calibration error':>19}",
    ]
    for name, kinds in figures["predictors"].items():
        for kind, windows in kinds.items():
            if kind == "all" or len(kinds) > 2:
                total, recent = windows["total"], windows["rolling"]
                lines.append(
                    f"  {name:24}{kind:14}{total['tested']:10,}{total['accuracy']:10.3f}{recent['accuracy']:10.3f}"
                    f"{recent['log_loss']:10.3f}{recent['calibration_error']:19.3f}"
                )
    alarms = ", ".join(f"{signal} {each['alarms']}" for signal, each in figures["drift"].items())
    return [*lines, *([f"  alarms of change: {alarms}"] if alarms else [])]


def short(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "  ".join(f"{k}={short(v)}" for k, v in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(short, value[:8])) + (" …" if len(value) > 8 else "") or "-"
    if value is None:
        return "unknown"
    return f"{value:.6g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
