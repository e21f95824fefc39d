"""Tables of text as people have them: delimiters, encodings, titles above the header, no header."""

import gzip
import random

import pytest

from connectors import Position, SourceFailed, UnusableSource, open_source
from connectors.files.line_blocks import PLAIN_TEXT, text_layout
from connectors.files.streams import as_utf8, open_stream
from stream_engine.data.csv_grammar import delimiter_of, first_record_end, last_record_end, rows_of
from stream_engine.formats.csv_events import Decoder
from stream_engine.formats.options import EventOptions

PLAIN = EventOptions()
ROWS = [("cat", "dog", "owl"), ("é", "b,2", "c;3"), ("x y", "a\tb", "d|e"), ("1", "2", "3")]


def read(path, layout=PLAIN_TEXT, at=None, block_bytes=1 << 20, options=PLAIN):
    """The comparisons of a file by name, and the position after each block."""
    source, decode, found, ends = open_source(str(path), at or {}, layout=layout, block_bytes=block_bytes), None, [], []
    try:
        while not source.finished():
            for record in source.poll(1.0):
                decode = decode or Decoder(options._replace(delimiter=layout.delimiter))
                done = decode(record.value, record.header)
                assert not done.rejected, done.rejected
                found += [tuple(done.names[i] for i in row) for row in done.triplets.tolist()]
                ends.append((record.partition, Position(record.next_offset, record.mark), len(found)))
    finally:
        source.close()
    return found, ends


def written(rows, delimiter):
    def cell(text):
        return f'"{text}"' if delimiter in text else text

    return "".join(delimiter.join(map(cell, row)) + "\n" for row in rows)


HEADER = ("anchor", "near", "far")


@pytest.mark.parametrize("encoding", [None, "utf-16", "latin-1"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_what_was_read_of_an_undamaged_file_is_vouched_for(tmp_path, encoding, suffix):
    path, text = tmp_path / "survey", "é,b,c\n" * 300_000
    raw = text.encode(encoding or "utf-8")
    path.write_bytes(gzip.compress(raw, 1) if suffix else raw)
    stream, found = as_utf8(open_stream(str(path), suffix), encoding), b""
    while piece := stream.read():
        found += piece
        assert suffix or stream.trusted == len(found)
    assert found.decode() == text
    assert stream.trusted == len(found)
    assert not stream.damage
    stream.close()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " ", "^"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("layout", ["", "sep", "skip", "no header"])
def test_every_delimiter_encoding_and_layout_reads_the_same_from_every_position(tmp_path, delimiter, encoding, layout):
    text = written(ROWS if layout == "no header" else [HEADER, *ROWS], delimiter)
    told = {"header": False, "delimiter": delimiter} if layout == "no header" else {}
    if layout == "sep":
        text = f"sep={delimiter}\n{text}"
    elif layout == "skip":
        text, told = "A survey; about, nothing\n\n" + text, {"skip_rows": 2}
    if layout == "told" or (delimiter in " ^" and layout != "sep"):
        told["delimiter"] = delimiter
    if encoding not in ("utf-8", "utf-8-sig", "utf-16"):
        told["encoding"] = encoding
    path = tmp_path / "survey.csv"
    path.write_bytes(text.encode(encoding))
    columns = {name: (str(n),) for n, name in enumerate(HEADER, 1)} if layout == "no header" else {}
    options, how = EventOptions(columns=columns), text_layout(**told)
    expected = [tuple(name.strip() for name in row) for row in ROWS]
    found, _ = read(path, how, options=options)
    assert found == expected
    found, ends = read(path, how, block_bytes=20, options=options)
    assert found == expected and len(ends) > 2
    for partition, position, before in ends:
        assert read(path, how, {partition: position}, options=options)[0] == expected[before:]


@pytest.mark.parametrize("suffix", [".tsv", ".txt", ".tsv.gz"])
def test_suffixes_of_tables_of_text(tmp_path, suffix):
    path = tmp_path / f"survey{suffix}"
    data = written([HEADER, *ROWS], "\t").encode()
    path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    assert read(path)[0] == ROWS


def test_a_tsv_with_more_commas_than_tabs_in_its_header_is_separated_by_tabs(tmp_path):
    path = tmp_path / "survey.tsv"
    path.write_text("anchor\tnear\tfar\tnote, one, two, three\na\tb\tc\tx\n")
    assert read(path)[0] == [("a", "b", "c")]


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"delimiter": "ab"}, "delimiter:.*'ab'"),
        ({"encoding": "latin-one"}, "encoding:.*'latin-one'"),
        ({"skip_rows": -1}, "skip_rows:.*-1"),
    ],
)
def test_a_layout_that_cannot_be_is_refused_in_one_line(told, message):
    with pytest.raises(UnusableSource, match=message):
        text_layout(**told)


def test_bytes_that_are_no_text_of_the_encoding_are_told_with_their_place(tmp_path):
    path = tmp_path / "survey.csv"
    path.write_bytes("anchor,near,far\na,b,c\n".encode("utf-16") + b"\x00\xd8\x00")
    with pytest.raises(SourceFailed, match="text.*utf-16.*--encoding"):
        read(path)


def test_only_utf8_is_followed(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"anchor,near,far\n")
    with pytest.raises(UnusableSource, match="UTF-8"):
        open_source(str(tmp_path / "a.csv"), {}, follow=True, layout=text_layout(encoding="latin-1"))


def test_rows_of_other_delimiters_end_where_those_of_commas_do():
    """A random world of quotes and line ends: with another delimiter everywhere, all stands at the same places."""
    rng = random.Random(5)
    tokens = ["a", "b", '"', '"', ",", ",", "\n", "\r\n", '""', '",', ',"', '"\n', '","', "a,b\n", '"a\nb",c\n']
    for _ in range(400):
        text = "".join(rng.choices(tokens, k=rng.randint(1, 20))).encode()
        for delimiter in b";\t|":
            other = text.replace(b",", bytes([delimiter]))
            for width in (1, 2, 3):
                for end in (first_record_end, last_record_end):
                    assert end(other, len(other), width, delimiter) == end(text, len(text), width)
                for one, two in zip(rows_of(text, width), rows_of(other, width, delimiter), strict=True):
                    assert one.tolist() == two.tolist()


def test_the_delimiter_is_found_in_the_header_alone():
    assert chr(delimiter_of(b'"a;b;c;d",near\n1;2;3')) == ","
    assert chr(delimiter_of(b"anchor;near,2;far\n,,,,,")) == ";"
    assert chr(delimiter_of(b"\xef\xbb\xbfanchor|near|far")) == "|"
    assert chr(delimiter_of(b"object")) == ","
