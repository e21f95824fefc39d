"""Newest results to where others keep them, after each snapshot and refit: `[publish] TABLE = URI`.

A process at a time (`main`) makes what is kept there equal to the newest published tables. What becomes the
newest while it runs is sent when it has ended; a place that cannot be reached is tried again, and counting goes on.

The process is `python -m` this module `STATE N`. What goes where comes on its standard input, as JSON: {"tables":
{table: uri}, "kafka": {option: value}}, so that no command line shows a password. What a table holds is read from where
it is kept, and only what differs is written: nothing needs remembering, and a process that was killed leaves no trace.
A process of its own keeps the run's memory and interpreter free. Ends with 0 and a line of JSON, or with 1 and a line
for people.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from connectors import TABLES, SinkUnavailable, UnusableSource, resolve, split_uri
from stream_engine.data.container import Corrupt
from stream_engine.exports import NothingToExport
from stream_engine.exports.table_rows import NoSuchTable, check_table, rows
from stream_engine.input.settings import BadSettings
from stream_engine.service.context import Context, PublishedState
from stream_engine.state.published import Published
from stream_engine.state.store import NoSuchSnapshot, Store

RETRY = 15.0  # seconds until a place that could not be reached is tried again


def check_publish(tables: Mapping[str, str], kafka: Mapping[str, Any]) -> None:
    """Raises `BadSettings` for a table that no export has, and for a URI that cannot be written to."""
    for table, uri in tables.items():
        try:
            check_table(table)
            scheme, address = split_uri(uri)
            resolve(scheme, TABLES)(address, kafka).close()
        except (NoSuchTable, UnusableSource) as error:
            raise BadSettings(f"publish.{table}: {error}") from error


class ResultSender:
    """Sends `tables` {table: uri} of the newest published state; nothing where there are none."""

    def __init__(
        self,
        tables: Mapping[str, str],
        kafka: Mapping[str, Any],
        directory: Path,
        published: PublishedState,
        context: Context,
        environment: Mapping[str, str] = MappingProxyType({}),
    ):
        self._environment = environment  # secrets of the process, with which it reads the state
        self._asked = json.dumps({"tables": dict(tables), "kafka": dict(kafka)}).encode()
        self._wanted, self._directory, self._published = bool(tables), directory, published
        self._log, self._metrics, self._heartbeat = context.log, context.metrics, context.heartbeat
        self._requests = context.requests
        self._process: subprocess.Popen[bytes] | None = None
        self._sending: tuple | None = None
        self._sent: tuple | None = None  # what was sent last
        self._retry_at = 0.0
        self.problem, self._failures = "", 0  # why the last attempt failed, and how many did

    def collect(self) -> None:
        """Process an attempt that ended, and begin one if something newer is published; never waits."""
        newest = self._published.newest
        if self._process is not None and self._process.poll() is not None:
            self._ended(self._process, self._process.stdout.read() if self._process.stdout else b"")
        if not self._wanted or newest is None or self._process is not None or time.monotonic() < self._retry_at:
            return
        if _version(newest) != self._sent:
            self._begin(newest)

    def _begin(self, newest: Published) -> None:
        self._sending = _version(newest)
        command = [sys.executable, "-m", "stream_engine.service.result_sender", str(self._directory)]
        self._process = subprocess.Popen(
            [*command, str(newest.snapshot.sequence)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **self._environment},
            start_new_session=True,
        )
        with suppress(BrokenPipeError), self._process.stdin or nullcontext() as pipe:
            if pipe:
                pipe.write(self._asked)  # a few hundred bytes: less than a pipe holds

    def _ended(self, process: subprocess.Popen[bytes], stderr: bytes) -> None:
        self._close(process)
        message = stderr.decode(errors="replace").strip()
        if process.returncode == 0:
            self._sent, self.problem = self._sending, ""
            self._metrics.results_sent_time.set_to_current_time()
            changes = {
                table: f"{n['written']} written, {n['removed']} removed" for table, n in json.loads(message).items()
            }
            self._log.info("results sent", snapshot=self._sending[0] if self._sending else None, **changes)
            return
        problem = message.splitlines()[-1] if message else f"exit {process.returncode}"
        self._retry_at = time.monotonic() + RETRY
        self._metrics.results_failed.inc()
        self._failures += 1
        if problem != self.problem:
            self._log.warning("results not sent; retrying", problem=problem, every_seconds=RETRY)
        self.problem = problem

    def finish(self) -> None:
        """Send the final results; gives up after one failure, or when a stop is requested."""
        self._retry_at, before = 0.0, self._failures
        while self._wanted and not self._requests.stop and self._failures == before:
            self.collect()
            if self._process is None:
                break
            self._heartbeat.tick()
            time.sleep(0.05)

    def close(self) -> None:
        """End an attempt that is under way: it writes all or nothing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._close(self._process)

    def _close(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdout:
            process.stdout.close()
        self._process = None


def _version(published: Published) -> tuple:
    """What tells published states apart: the snapshot, and the artifacts made of it."""
    versions = sorted((kind, artifact.sequence, artifact.digest) for kind, artifact in published.artifacts.items())
    return (published.snapshot.sequence, published.snapshot.digest, *versions)


def send_table(published: Published, table: str, uri: str, options: dict[str, Any]) -> dict[str, int]:
    """Make what is kept at `uri` the rows of this table.

    Returns
    -------
    dict
        How many rows there are, and how many were written and removed.

    Raises
    ------
    NothingToExport, NoSuchTable, SinkUnavailable, UnusableSource
    """
    new_rows = rows(published, table)
    scheme, address = split_uri(uri)
    target = resolve(scheme, TABLES)(address, options)
    try:
        target.open()
        old_rows = target.rows()
        changed: dict[bytes, bytes | None] = {key: row for key, row in new_rows.items() if old_rows.get(key) != row}
        changes: dict[bytes, bytes | None] = dict.fromkeys(old_rows.keys() - new_rows.keys())
        if changed or changes:
            snapshot = published.snapshot
            target.change(changed | changes, {"snapshot": str(snapshot.sequence), "digest": snapshot.digest})
    finally:
        target.close()
    return {"rows": len(new_rows), "written": len(changed), "removed": len(changes)}


def main(state: str, sequence: str) -> int:
    """Send every table; returns the exit status."""
    request = json.load(sys.stdin)
    try:
        published = Store(state).published(sequence)
    except (NoSuchSnapshot, Corrupt) as error:
        print(error)
        return 1
    sent: dict[str, Any] = {}
    for table, uri in request["tables"].items():
        try:
            sent[table] = send_table(published, table, uri, request["kafka"])
        except NothingToExport:
            sent[table] = {"rows": 0, "written": 0, "removed": 0}  # a refit makes it later
        except (NoSuchTable, SinkUnavailable, UnusableSource) as error:
            print(" ".join(str(error).split()))
            return 1
    print(json.dumps(sent))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
