"""Sends the newest results to the targets of `[publish] TABLE = URI`, after each snapshot and refit."""

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
from stream_engine.service.context import Context
from stream_engine.service.published_state import PublishedState
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
    """Sends `tables` {table: uri} of the newest published state, one process at a time.

    What becomes the newest while a process runs is sent when it has ended; after a failure it is tried again, and
    counting goes on. A process keeps the run's memory and interpreter free.
    """

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
        self._request = json.dumps({"tables": dict(tables), "kafka": dict(kafka)}).encode()
        self._has_tables, self._directory, self._published = bool(tables), directory, published
        self._log, self._metrics, self._heartbeat = context.log, context.metrics, context.heartbeat
        self._requests = context.requests
        self._process: subprocess.Popen[bytes] | None = None
        self._sending: tuple | None = None
        self._last_sent: tuple | None = None  # what was sent last
        self._retry_at = 0.0
        self.problem, self._failures = "", 0  # why the last attempt failed, and how many did

    def collect(self) -> None:
        """Process an attempt that ended, and begin one if something newer is published; never waits."""
        newest = self._published.newest
        if self._process is not None and self._process.poll() is not None:
            self._process_end(self._process, self._process.stdout.read() if self._process.stdout else b"")
        if not self._has_tables or newest is None or self._process is not None or time.monotonic() < self._retry_at:
            return
        if _version(newest) != self._last_sent:
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
                pipe.write(self._request)  # a few hundred bytes: less than a pipe holds

    def _process_end(self, process: subprocess.Popen[bytes], stderr: bytes) -> None:
        self._close(process)
        message = stderr.decode(errors="replace").strip()
        if process.returncode == 0:
            self._last_sent, self.problem = self._sending, ""
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
        self._retry_at, failures_before = 0.0, self._failures
        while self._has_tables and not self._requests.stop and self._failures == failures_before:
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
        new_or_changed: dict[bytes, bytes | None] = {
            key: row for key, row in new_rows.items() if old_rows.get(key) != row
        }
        changes: dict[bytes, bytes | None] = dict.fromkeys(old_rows.keys() - new_rows.keys())
        if new_or_changed or changes:
            snapshot = published.snapshot
            target.change(new_or_changed | changes, {"snapshot": str(snapshot.sequence), "digest": snapshot.digest})
    finally:
        target.close()
    return {"rows": len(new_rows), "written": len(new_or_changed), "removed": len(changes)}


def main(state: str, sequence: str) -> int:
    """Send every table: `python -m` this module STATE N; returns the exit status, 0 with a line of JSON or 1 with a
    line for people."""
    # {"tables": {table: uri}, "kafka": {option: value}} comes on standard input, so that no command line shows a
    # password. The old rows are read from the target, and only differences are written: nothing needs remembering, and
    # a process that was killed leaves no trace.
    request = json.load(sys.stdin)
    try:
        published = Store(state).published(sequence)
    except (NoSuchSnapshot, Corrupt) as error:
        print(error)
        return 1
    changes: dict[str, Any] = {}
    for table, uri in request["tables"].items():
        try:
            changes[table] = send_table(published, table, uri, request["kafka"])
        except NothingToExport:
            changes[table] = {"rows": 0, "written": 0, "removed": 0}  # a refit makes it later
        except (NoSuchTable, SinkUnavailable, UnusableSource) as error:
            print(" ".join(str(error).split()))
            return 1
    print(json.dumps(changes))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
