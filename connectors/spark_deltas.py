"""The batches of a Spark counting job as a source: `deltas://DIR`, where DIR is the job's --out.

A record is one batch (its tables by name), and offsets count batches; a missing batch stops the source. The mark is a
check value of the job, so that deltas of another job in the same folder are detected.
"""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from connectors import Position, Record, Source, SourceFailed, UnusableSource

FORMAT = 1  # of the deltas, as the job writes it
_MAX_DIGITS = 18
_LOOK_SECONDS = 0.2  # seconds between looks for the next batch


class DeltaSource(Source):
    """The batches below `location`; without `follow`, the source is finished when the existing ones are read."""

    def __init__(self, location: str, positions: Mapping[str, Position], *, follow: bool = False):
        self.directory = Path(os.path.abspath(location))
        self.partition = f"deltas://{self.directory}"
        self._folder, self._follow = self.directory / "delta", follow
        self._next, self._mark = positions.get(self.partition, Position(0))
        self._numbers: list[int] = []
        self._looked = float("-inf")
        self._checked = self._ended = False
        if not follow and not (self._folder / "job.json").exists():
            raise UnusableSource(
                f"{self.directory}: no deltas (delta/job.json is missing); use the --out of spark-counts"
            )

    def poll(self, timeout: float) -> list[Record]:
        """The next batch, or none within `timeout` seconds. Raises `SourceFailed`."""
        until = time.monotonic() + timeout
        while not self._ready():
            if not self._follow:
                self._ended = True
                return []
            if (remaining := until - time.monotonic()) <= 0:
                return []
            time.sleep(min(remaining, _LOOK_SECONDS))
        number, self._next = self._next, self._next + 1
        return [Record(self._read(number), self.partition, number, number + 1, self._mark, "delta", "batch")]

    def _ready(self) -> bool:
        """Whether the next batch exists; also checks the job and the order."""
        if not self._job_is_there():
            return False
        if self._next not in self._numbers:
            self._look()
        later = [number for number in self._numbers if number > self._next]
        if self._next not in self._numbers and later:
            raise SourceFailed(
                f"{self._folder}: batch={self._next} is missing, but batch={later[0]} exists; counts without it "
                "would be wrong. Restore it"
            )
        return self._next in self._numbers

    def _job_is_there(self) -> bool:
        if not self._checked:
            path = self._folder / "job.json"
            if not path.exists():
                return False
            try:
                job = json.loads(path.read_text())
                query, written = str(job["query"]), job["format"]
            except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
                raise SourceFailed(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
            if written != FORMAT:
                raise SourceFailed(
                    f"{path}: deltas of format {written}, but this engine reads {FORMAT}; upgrade the older one"
                )
            mark = crc32(query.encode())
            if self._next and mark != self._mark:
                raise SourceFailed(
                    f"{self.directory}: has deltas of a different job than the snapshot (up to "
                    f"batch={self._next - 1}); nothing was read. Give them another path to count both"
                )
            self._mark, self._checked = mark, True
        return True

    def _look(self) -> None:
        names = os.listdir(self._folder) if self._folder.exists() else []
        self._numbers = sorted(int(name[6:]) for name in names if name.startswith("batch=") and _is_number(name[6:]))

    def _read(self, number: int) -> dict[str, Any]:
        """The tables of a batch by the name of their part."""
        import pyarrow as pa
        from pyarrow import parquet

        folder, tables = self._folder / f"batch={number}", {}
        try:
            for part in sorted(folder.glob("part=*")):
                pieces = [parquet.read_table(file, partitioning=None) for file in sorted(part.glob("*.parquet"))]
                tables[part.name[5:]] = pa.concat_tables(pieces)
            if not tables and not (folder / "_SUCCESS").exists():  # Spark writes that also where a batch says nothing
                raise OSError("it is empty")
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:  # undecodable names of columns
            if isinstance(error, pa.ArrowMemoryError):
                raise
            self._next = number
            raise SourceFailed(
                f"{folder}: cannot be read: {' '.join(str(error).split())}; restore it and run again: "
                "reading resumes there"
            ) from error
        return tables

    def finished(self) -> bool:
        return self._ended and not self._follow

    def ready(self) -> bool:
        """True once a job has written here."""
        return self._checked or (self._folder / "job.json").exists()

    def lag(self) -> dict[str, int]:
        """Existing unread batches."""
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._looked = time.monotonic()
            self._look()
        return {self.partition: sum(number >= self._next for number in self._numbers)}

    def close(self) -> None: ...


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
