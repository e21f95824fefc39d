"""Newest results to where others keep them, after each snapshot and refit: `[publish] TABLE = URI`.

A process at a time (`send_tables`) makes what is kept there equal to the newest published tables. What becomes the
newest while it runs is sent when it has ended; a place that cannot be reached is tried again, and counting goes on.
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from connectors import TABLES, UnusableSource, resolve, split_uri
from stream_engine.exports.files import NoSuchTable, check_table
from stream_engine.service.context import Context, PublishedState
from stream_engine.service.settings import BadSettings
from stream_engine.state.published import Published

RETRY = 15.0  # seconds until a place that could not be reached is tried again


def check_publish(tables: Mapping[str, str], kafka: Mapping[str, Any]) -> None:
    """Raises `BadSettings` for a table that no export has, and for a URI that cannot be written to."""
    for table, uri in tables.items():
        try:
            check_table(table)
            scheme, rest = split_uri(uri)
            resolve(scheme, TABLES)(rest, kafka).close()
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
    ):
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
        command = [sys.executable, "-m", "stream_engine.service.send_tables", str(self._directory)]
        self._process = subprocess.Popen(
            [*command, str(newest.snapshot.sequence)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(BrokenPipeError), self._process.stdin or nullcontext() as pipe:
            if pipe:
                pipe.write(self._asked)  # a few hundred bytes: less than a pipe holds

    def _ended(self, process: subprocess.Popen[bytes], told: bytes) -> None:
        self._close(process)
        said = told.decode(errors="replace").strip()
        if process.returncode == 0:
            self._sent, self.problem = self._sending, ""
            self._metrics.results_sent_time.set_to_current_time()
            changes = {
                table: f"{n['written']} written, {n['removed']} removed" for table, n in json.loads(said).items()
            }
            self._log.info("results sent", snapshot=self._sending[0] if self._sending else None, **changes)
            return
        problem = said.splitlines()[-1] if said else f"exit {process.returncode}"
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
    made = sorted((kind, artifact.sequence, artifact.digest) for kind, artifact in published.artifacts.items())
    return (published.snapshot.sequence, published.snapshot.digest, *made)
