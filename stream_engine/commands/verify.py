"""`stream-engine verify`: is a state whole, and is it what its sources hold? Reads only; takes no lock."""

from typing import Any

import click

from stream_engine.commands import state_option
from stream_engine.commands.input_options import input_options, settings_of
from stream_engine.input.settings.loading import signing_of
from stream_engine.input.stored_options import with_options_of
from stream_engine.service.repair.check_state import NOTE, OK, WRONG, Finding, check_state
from stream_engine.service.repair.recount import Recount, recount
from stream_engine.state.store import Store


class ProblemsFound(RuntimeError):
    """What `verify` ends with when something is wrong; one line."""


@click.command("verify")
@state_option
@click.option("--dead-letters", metavar="FOLDER", help="Folder of the dead letters. Default: DIR/dead_letters.")
@click.option(
    "--from",
    "starts",
    multiple=True,
    metavar="PARTITION=OFFSET",
    help="Offset at which the first run began in a partition, if not at its beginning (--start latest).",
)
@input_options
def command(state: str, dead_letters: str | None, starts: tuple[str, ...], **options: Any) -> None:
    """Check every snapshot, artifact and dead letter; with SOURCE..., also recount and report differences."""
    begun = dict(_start(text) for text in starts)
    settings = settings_of(options) if options["source"] or options["config"] or options["input__labels"] else None
    signing = signing_of(settings) if settings else None
    wrong = _print(check_state(state, dead_letters or (settings.dead_letters if settings else None), signing))
    if settings and (settings.source or settings.input.labels):
        snapshot = Store(state, signing=signing).latest().snapshot
        if snapshot is None:
            raise ProblemsFound(f"{state}: no valid snapshot; nothing to recount")
        settings = with_options_of(settings, snapshot.counters.get("input", {}))
        wrong += _print(_findings(recount(settings, snapshot, begun), snapshot.sequence))
    if wrong:
        raise ProblemsFound(f"{state}: {wrong} {'problem' if wrong == 1 else 'problems'} found")
    click.echo(f"{state}: no problem found")


def _start(text: str) -> tuple[str, int]:
    name, _, offset = text.rpartition("=")
    if not name or not offset.isdecimal():
        raise click.UsageError(f"--from: got {text!r}, expected PARTITION=OFFSET such as votes/0=1200")
    return name, int(offset)


def _print(findings: Any) -> int:
    """Print findings, one a line; how many are wrong."""
    wrong = 0
    for what, verdict, text in findings:
        click.echo(f"{verdict:6} {what}: {text}")
        wrong += verdict == WRONG
    return wrong


def _findings(recount: Recount, sequence: int) -> list[Finding]:
    what = f"recount of snapshot {sequence:012d}"
    findings = [Finding("sources", WRONG, problem) for problem in recount.problems]
    if recount.problems and not recount.records:  # the sources are others: whatever was counted differs
        return findings
    findings += [Finding(what, NOTE, f"cannot be recounted exactly: {limit}") for limit in recount.limits]
    if recount.limits:
        text = f"all {recount.records:,} records that the sources still hold are counted in the state"
        findings += [Finding(what, WRONG, line) for line in recount.differing] or [Finding(what, OK, text)]
        return findings
    if recount.differing and recount.manual_changes:
        text = f"manual changes, which are not in the sources: {', '.join(recount.manual_changes)}"
        if any(change.startswith("reshard") for change in recount.manual_changes):
            text += "; after reshard without sources the counts are in shard-0: merge all new states and verify that"
        findings.append(Finding(what, NOTE, text))
        summary = f"{recount.differing[0]}; {len(recount.differing) - 1:,} more counters and arrays differ"
        findings.append(Finding(what, WRONG, summary if len(recount.differing) > 1 else recount.differing[0]))
    else:
        findings += [Finding(what, WRONG, line) for line in recount.differing]
    if not findings:
        equal = (
            "to the last byte" if recount.same_bytes else "in everything that does not depend on the order of arrival"
        )
        findings.append(Finding(what, OK, f"{recount.records:,} records give an equal state {equal}"))
    if not recount.one_order:
        text = "several partitions or an earlier guard policy: the partial order was checked, not recounted"
        findings.append(Finding(what, NOTE, text))
    elif not recount.same_bytes and not recount.differing and not recount.problems:
        findings.append(Finding(what, NOTE, "sections are equal, bytes differ: another version wrote it"))
    return findings
