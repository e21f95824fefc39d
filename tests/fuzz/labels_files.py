"""Files of labels, as `--labels FILE` reads them: read, or refused in one line."""

import tempfile
from pathlib import Path
from random import Random

from stream_engine.__main__ import exit_status
from stream_engine.service.ingest import read_labels
from tests.fuzz.csv_records import TOKENS as CSV_TOKENS
from tests.fuzz.json_lines import TOKENS as JSON_TOKENS
from tests.fuzz.mutations import damaged, kept_case
from tests.fuzz.reading import chance, seen

TRUSTED = True
COLUMNS = [{}, {}, {"object": ("name",)}, {"label": ("class",)}]
CSV = [b"object,label\n", b"object,class\n", b"name,label\n", b'"object", kind \n', b"label,object\n", b"object\n"]


def make(rng: Random) -> bytes:
    case = kept_case(rng, "labels")
    if case is not None:
        return damaged(rng, case, CSV_TOKENS + JSON_TOKENS)
    if rng.random() < 0.5:
        rows = [b"%s,%s\n" % (rng.choice((b"a", b'"b"', b"")), rng.choice((b"x", b"", b"y"))) for _ in range(4)]
        return damaged(rng, rng.choice(CSV) + b"".join(rows), CSV_TOKENS)
    lines = b'{"object":"a","label":"x"}\n{"object":"b","label":null}\n{"type":"label","object":5,"label":1}\n'
    return damaged(rng, lines, JSON_TOKENS)


def check(data: bytes) -> str:
    rng = chance(data)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / f"labels.{'jsonl' if data[:1] in b'{[' else 'csv'}"
        path.write_bytes(data)
        try:
            blocks, position = read_labels(str(path), rng.choice(COLUMNS))
        except Exception as error:
            if exit_status(error) is None:
                raise
            assert "\n" not in str(error)
            return "unusable"
    assert position.offset <= len(data)
    for block in blocks:
        assert len(block.dead_letters) == len(block.decoded.rejected) and seen(block.decoded) >= 0
    return "read"
