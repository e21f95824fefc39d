"""Where CSV records end: the ends of blocks and the compiled rows against the plain rules, no decoder.

Fast, so that it sees by far the most of all malformed CSV.
"""

from random import Random

from stream_engine.data.csv_grammar import WHOLE, rows_of
from tests.fuzz.mutations import kept_case
from tests.fuzz.reading import WHOLE as ALL
from tests.fuzz.reading import blocks_of, chance, pieces_of
from tests.support.csv_reference import BOM, fields_of_record, is_text, rows_of_file

TRUSTED = True
TOKENS = [
    b"a",
    b"b",
    b'"',
    b'"',
    b",",
    b",",
    b"\n",
    b"\n",
    b"\r",
    b"\r\n",
    b'""',
    b'",',
    b',"',
    b'"\n',
    b'\n"',
    b'","',
    b"a,b\n",
    b'"a\nb",c\n',
    b'a,"b"\r\n',
    b"\xef\xbb\xbf",
    b"\0",
    b"\xff",
    "é".encode(),
]
HEADERS = [b"h\n", b"h,i\n", b"h,i\r\n", b"h,i,j\n", b"\xef\xbb\xbfh,i\n", b'\n"h",i\n']


def make(rng: Random) -> bytes:
    case = kept_case(rng, "csv_records")
    if case is not None:
        at = rng.randint(0, len(case))
        return case[:at] + rng.choice(TOKENS) + case[at:]
    return rng.choice(HEADERS) + b"".join(rng.choices(TOKENS, k=rng.randint(0, 24)))


def check(data: bytes) -> str:
    rng = chance(data)
    header, rows = rows_of_file(data)
    width = len(fields_of_record(header.removeprefix(BOM), 0)[1])
    expected = [(row.start, row.end, row.fields is not None) for row in rows]
    for block_bytes in (ALL, rng.choice((1, 2, 5, 13, 40))):
        blocks, line, unreadable = blocks_of("csv", pieces_of(rng, data), block_bytes)
        if unreadable:
            return "unreadable"
        found = []
        for block in blocks:
            assert not block.problem
            told = rows_of(block.value, width)
            for start, end, state in zip(told.start.tolist(), told.end.tolist(), told.state.tolist(), strict=True):
                whole = state == WHOLE and is_text(block.value[start:end])
                found.append((block.offset + start, block.offset + end, whole))
        assert found == expected, (found, expected)
    return "records" if expected else "nothing"
