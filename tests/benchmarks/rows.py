"""What the stages share: rows of the table, CPU seconds of calls and of whole commands."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from time import process_time
from typing import NamedTuple

REPEATS = 3


def larger_is_better(unit: str) -> bool:
    """Rates and votes; of all other units (times, bytes, percent of more CPU) less is better."""
    return "/s" in unit or "/CPU-s" in unit or unit == "votes"


def row(
    stage: str,
    case: str,
    ours: float | None,
    unit: str,
    rival: float | None = None,
    rival_name: str = "",
    target: str = "",
    notes: str = "",
) -> dict:
    """A line of the table. `ratio` is above 1 where ours is better."""
    ratio = None
    if ours and rival:
        ratio = ours / rival if larger_is_better(unit) else rival / ours
    return {
        "stage": stage,
        "case": case,
        "ours": ours,
        "rival": rival,
        "rival_name": rival_name,
        "ratio": ratio,
        "unit": unit,
        "target": target,
        "notes": notes,
    }


def timed(call: Callable, *arguments) -> tuple:
    """`(what it returned, CPU seconds)`."""
    began = process_time()
    found = call(*arguments)
    return found, process_time() - began


class Spent(NamedTuple):
    """What a command took. One that was stopped after `most` seconds took at least that; one that failed says why."""

    cpu: float  # seconds, user and system, with all its children
    wall: float
    peak: int  # bytes of the largest of its processes
    output: str
    problem: str = ""


# A process whose program is replaced goes on counting the memory of the one that it was forked from. So the command is
# the child of a small program, which tells what its children took.
LAUNCHER = """
import json, resource, subprocess, sys, time
began = time.perf_counter()
done = subprocess.run(sys.argv[2:])
wall, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    json.dump([used.ru_utime + used.ru_stime, wall, used.ru_maxrss * 1024], file)
sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)
"""


def spent(*command: object, most: float = 300.0, **environment: object) -> Spent:
    """Run it to its end, or stop it (and its children) after `most` seconds; `environment`: variables besides ours."""
    with tempfile.NamedTemporaryFile("r") as report, tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", LAUNCHER, report.name, *map(str, command)],
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        )
        try:
            process.wait(most)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return Spent(most, most, 0, "", f"stopped after {most:.0f} s")
        cpu, wall, peak = json.load(report)
        output.seek(0)
        said = output.read()
    problem = ""
    if process.returncode:
        problem = said.strip().splitlines()[-1][-200:] if said.strip() else f"exit status {process.returncode}"
    return Spent(cpu, wall, peak, said, problem)


def engine(*arguments: object, most: float = 300.0, **environment: object) -> Spent:
    """`stream-engine ARGUMENTS`."""
    return spent(sys.executable, "-m", "stream_engine", *arguments, most=most, **environment)


def least(call: Callable[[], Spent], times: int) -> Spent:
    """The run with the least CPU of several, as neighbours on the machine take turns."""
    return min((call() for _ in range(times)), key=lambda each: each.cpu)


def command_row(
    case: str, ours: Spent, rival: Spent | None = None, rival_name: str = "", target: str = "", notes: str = "", of=None
) -> dict:
    """A row in CPU seconds, or with `of` comparisons in millions of them a CPU second; wall, memory and load beside
    it."""
    figure, theirs = (each and (of / each.cpu / 1e6 if of else each.cpu) for each in (ours, rival))
    problems = [
        f"{name}: {each.problem}" for name, each in (("ours", ours), (rival_name, rival)) if each and each.problem
    ]
    said = [
        *problems,
        f"wall {ours.wall:.2f} s, CPU {ours.cpu:.2f} s, peak memory {ours.peak / 1e9:.2f} GB, "
        f"load {os.getloadavg()[0]:.1f}",
        *filter(None, [notes]),
    ]
    unit = "M/CPU-s" if of else "CPU-s"
    return row("whole commands", case, figure, unit, theirs, rival_name, target, "; ".join(said))
