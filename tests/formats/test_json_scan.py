"""Lines read by the scan against the same lines read by the definition, one by one with msgspec.

Caught: a cell that takes what msgspec refuses or reads otherwise, places that are off by a byte, rows that shift beside
lines that hold no event or several. Not caught: an error of the definition, which tests/laws has.
"""

import json

import numpy as np
import pytest

from stream_engine.data import compiled
from stream_engine.formats import json_events
from stream_engine.formats.json_events import Decoder
from stream_engine.formats.options import Bounds, EventOptions
from tests.support.event_worlds import essence

OPTIONS = EventOptions(provenance=True)
LOOKS = [
    ('{{"anchor":"{a}","near":"{b}","far":"{c}"}}', OPTIONS),
    ('{{"anchor": "{a}", "near": "{b}", "far": "{c}"}}', EventOptions()),
    ('{{"far":{i},"anchor":{j},"near":"{b}"}}', OPTIONS),
    ('{{"type":"triplet","anchor":"{a}","near":"{b}","far":"{c}","worker":"{w}","weight":{x},"time":{x}}}', OPTIONS),
    ('{{"event_id":{i},"anchor":"{a}","near":"{b}","far":"{c}","time":"{t}","rt":{x},"ok":true}}', OPTIONS),
    ('{{"anchor":"{a}","near":"{b}","far":"{c}","id":"{w}","worker":null,"note":"{w}"}}', OPTIONS),
    ('{{"type":"quadruplet","near":["{a}","{b}"],"far":["{c}", {i}]}}', OPTIONS),
    ('{{"type":"odd_one_out","objects":["{a}","{b}","{c}"],"odd":"{a}","worker":{i}}}', OPTIONS),
    ('{{"type":"ranking","anchor":"{a}","ranked":["{b}","{c}",{i}]}}', OPTIONS),
    ('{{"near_i":"{a}","near_j":"{b}","far_i":"{a}","far_j":"{c}"}}',
     EventOptions("quadruplet", {part: (part,) for part in ("near_i", "near_j", "far_i", "far_j")}, {}, True)),
    ('{{"l":"{a}","m":"{b}","r":"{c}","mid":"{a}","type":"{w}"}}',
     EventOptions("most_central", {"objects": ("l", "m", "r"), "central": ("mid",)}, {}, True)),
    ('{{"anchor":"{a}","near":"{b}","far":"{c}","gold":null}}', EventOptions(columns={"catch": ("gold",)})),
    ('{{"anchor":"{a}","near":"{b}","far":"{c}","n":{x}}}', EventOptions(where={"n": "0.25", "far": "c"})),
]  # fmt: skip
NAMES = ["a", "b", "c", "dd", "5", "-7", "é", "日本語の名前", "x" * 30, "|", "{", "}", "a b", "\x7f"]
ODD = [
    b"", b" ", b"5", b"{}", b"[]", b"}", b"{", b"null", b"\\", b'"', b"\xff", b"\0", b"\r", b"\n", b"\\u0041", b",",
    b":", b"0", b"-0", b"01", b"1e3", b"1.", b".5", b"9" * 30, b"true", b'"k":1,', b"\xef\xbb\xbf", b"\t", b"x" * 1025,
]  # fmt: skip


@pytest.fixture(autouse=True)
def few_lines_at_once(monkeypatch):
    monkeypatch.setattr(Decoder, "scan_events", 5)
    monkeypatch.setattr(Decoder, "scan_bytes", 400)


def test_the_first_events_do_not_wait_for_the_compiler(monkeypatch):
    def compile_scan(function):
        raise RuntimeError

    monkeypatch.setattr(json_events, "scan_events", compiled.Kernel(lambda: None, compile_scan))
    monkeypatch.setattr(compiled, "_max_interpreted_entries", 2 * json_events.ENTRIES_PER_EVENT)
    line, decoder = b'{"anchor":"a","near":"b","far":"c"}', Decoder(OPTIONS)
    assert essence(decoder(line)) == essence(decoder(line)) == essence(slow(OPTIONS)(line))
    with pytest.raises(RuntimeError):
        decoder(line)


def some_line(rng, look):
    a, b, c, w = rng.choice(NAMES, 4)
    i, j = rng.integers(-30, 30, 2).tolist()
    x = rng.choice(["0", "7", "0.25", "1714564800.5", "123456789.012345"])
    t = f"{rng.integers(1, 9999):04d}-{rng.integers(1, 13):02d}-{rng.integers(1, 32):02d}T12:59:07"
    t += rng.choice(["Z", ".5Z", ".123456Z", "+02:00"])
    return look.format(a=a, b=b, c=c, w=w, i=i, j=j, x=x, t=t).encode()


def slow(options):
    return Decoder(options, fast=False)


def check(value, options, used=None):
    """Both ways of a value, as a block and as messages; `used` has seen other values."""
    if used is None:
        used, plain = Decoder(options), slow(options)
        assert used.lines(value).unknown_fields == plain.lines(value).unknown_fields
    else:
        plain = _PLAIN.setdefault(repr(options), slow(options))
    done, wanted = used.lines(value), plain.lines(value)
    assert essence(done) == essence(wanted) and done.rejected == wanted.rejected
    values = value.split(b"\n")
    (done, refused), (wanted, refused_too) = used.many(values), plain.many(values)
    assert essence(done) == essence(wanted) and refused == refused_too


_PLAIN: dict[str, Decoder] = {}


def read_by_definition(decode, value, monkeypatch):
    """How many events of the value the scan leaves to the definition."""
    left = []
    with monkeypatch.context() as patch:
        patch.setattr(decode, "_by_definition", lambda text: left.append(text) or Decoder._by_definition(decode, text))
        decode.lines(value)
    return len(left)


@pytest.mark.parametrize("look, options", LOOKS)
def test_lines_of_one_look(look, options, monkeypatch):
    """Random lines, with names that are refused among them; nothing of the common looks is left to the definition."""
    rng, used = np.random.default_rng(0), Decoder(options)
    for _ in range(20):
        check(b"\n".join(some_line(rng, look) for _ in range(int(rng.integers(1, 12)))), options, used)
    plain = look.format(a="a", b="b", c="c", w="w", i=7, j=-5, x="0.5", t="2024-02-29T12:00:00Z").encode()
    lines = [plain, look.format(a="é", b="5", c="-", w="", i=0, j=12, x="8", t="0001-01-01T00:00:00.25Z").encode()]
    for feed in (b"\n", b"\r\n"):
        assert read_by_definition(Decoder(options), feed.join(lines * 9) + feed, monkeypatch) == 0


@pytest.mark.parametrize("look, options", LOOKS)
def test_a_line_that_is_mangled_anywhere(look, options):
    """Every byte left out, and something odd put in at every place, among lines that are good."""
    rng, used, plain = np.random.default_rng(1), Decoder(options), slow(options)
    good = [some_line(rng, look) for _ in range(4)]
    line = look.format(a="a", b="bb", c="é", w="u", i=5, j=6, x="0.5", t="2024-05-01T12:00:00Z").encode()
    for at in range(len(line) + 1):
        odd = ODD[int(rng.integers(len(ODD)))]
        for wrong in (line[:at] + line[at + 1 :], line[:at] + odd + line[at:], line[:at] + odd + line[at + 1 :]):
            value = b"\n".join([*good, wrong, line])
            assert essence(used.lines(value)) == essence(plain.lines(value)), wrong


SCANNED = [
    b'{"anchor":"\\u0041\\n\\/","near":"b\\ud83d\\ude00","far":"c"}',
    b'{"anch\\u006fr":"a","near":"b","far":"c"}',
    b'{"anchor":"a","near":"b","far":"c","rt":{},"deep":[1,{"a":[{}, [] ,"\\t"]},-0.5e-3]}',
    b'{ "anchor" : "a" ,\t"near":"b","far":"c" , "ok" : false }',
]
LEFT = [
    b'{"anchor":"a","anchor":"a","near":"b","far":"c"}',
    b'{"anchor":-0,"near":"b","far":"c"}',
    b'{"anchor":5.0,"near":"b","far":"c"}',
    b'{"anchor":"a","near":"b","far":"c","deep":' + b"[" * 61 + b"]" * 61 + b"}",
    b'{"anchor":"a","near":"b","far":"c","x":"\\ud800"}',
    b'{"anchor":"a","near":"b","far":"c","x":[1,]}',
    b'{"anchor":"a","near":"b","far":"c",}',
    b'{"anchor":"a","near":"b","far":"c"}}',
    b'{"anchor":"a","near":"b","far":"c","x":{"y":1 "z":2}}',
    b'{"anchor":"a","near":"b","far":"c","x":{1:2}}',
    b"{}",
]


@pytest.mark.parametrize("line", SCANNED + LEFT)
def test_what_the_scan_takes(line, monkeypatch):
    check(b"\n".join([line, line]), OPTIONS)
    assert read_by_definition(Decoder(OPTIONS), line, monkeypatch) == (line in LEFT)


def test_a_message_of_too_many_lines_is_refused_beside_others():
    line = b'{"anchor":"a","near":"b","far":"c"}'
    values = [b"\n".join([line] * n) for n in (3, 8, 1, 7)]
    done, refused_in = Decoder(EventOptions(bounds=Bounds(max_rows=5))).many(values[:1] + values)
    assert done.values == 2
    assert refused_in == []
    assert done.events == {"triplet": 6}
    done, refused_in = Decoder(EventOptions(bounds=Bounds(max_rows=5))).many(values[1:])
    assert [refused.reason for refused in done.rejected] == ["too_large"]
    assert refused_in == [0]
    assert done.values == 1
    done, refused_in = Decoder(EventOptions(bounds=Bounds(max_rows=8))).many(values)
    assert refused_in == [] and done.events == {"triplet": 19}


NUMBERS = ["0", "00", "-0", "-1", "1", "999999999999999", "9999999999999999", "1e3", "0.1", "0.30000000000000004", "1.",
           "123456789012.345", "5.e1", "1.10", "0.000000000000001", "NaN", "Infinity", "1_0", "+1", ""]  # fmt: skip


@pytest.mark.parametrize("field", ["weight", "time", "rt", "anchor", "worker", "id"])
def test_numbers(field):
    def line(number):
        return json.dumps({"anchor": "a", "near": "b", "far": "c"} | {field: 7}).replace("7", number).encode()

    rng = np.random.default_rng(4)
    used = Decoder(OPTIONS)
    numbers = [*NUMBERS, *(repr(float(f"{rng.random() * 10**k:.{d}f}")) for k in range(9) for d in range(1, 9))]
    for number in numbers:
        check(b"\n".join([line("7"), line("8"), line(number), line("9")]), OPTIONS, used)
