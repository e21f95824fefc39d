"""gzip and zstd files of lines and CSV, in several parts, damaged or not: blocks of any size hold the same bytes and
end in the same way, and no more is read than was vouched for."""

import gzip
import tempfile
from pathlib import Path
from random import Random

import zstandard

from connectors import SourceFailed
from connectors.files.source import FileSource
from tests.fuzz import csv_files, json_lines
from tests.fuzz.mutations import flipped, kept_case
from tests.fuzz.reading import chance

TRUSTED = True
ZSTD = b"\x28\xb5\x2f\xfd"


def make(rng: Random) -> bytes:
    case = kept_case(rng, "packed")
    if case is None:
        data = (csv_files if rng.random() < 0.5 else json_lines).make(rng)
        cut = rng.randint(0, len(data))
        parts = [data[:cut], data[cut:]] if rng.random() < 0.5 else [data]
        pack = zstandard.ZstdCompressor(write_checksum=True).compress if rng.random() < 0.5 else gzip.compress
        case = b"".join(map(pack, parts))
        if rng.random() < 0.4:
            return case
    return flipped(rng, case, 2)


def check(data: bytes) -> str:
    rng = chance(data)
    kind = rng.choice(("csv", "jsonl"))
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / f"x.{kind}.{'zst' if data.startswith(ZSTD) else 'gz'}"
        path.write_bytes(data)
        first, said = _read(path, 1 << 20)
        again, said_again = _read(path, rng.randint(1, 60))
    assert bool(said) == bool(said_again), (said, said_again)
    # where a part is damaged, how much of it came out before depends on nothing but its bytes
    assert said == said_again or "header" in said, (said, said_again)
    assert first == again
    return "failed" if said else "read"


def _read(path: Path, block_bytes: int) -> tuple[bytes, str]:
    source, read = FileSource(str(path), {}, block_bytes=block_bytes), b""
    try:
        while not source.finished():
            for record in source.poll(0):
                assert record.offset == len(record.header) + len(read) or record.offset >= len(read)
                read += record.value
        return read, ""
    except SourceFailed as error:
        assert "\n" not in str(error)
        return read, str(error)
    finally:
        source.close()
