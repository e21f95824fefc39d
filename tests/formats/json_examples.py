"""What JSON events must decode to, and what is refused for which reason: the examples that tests/laws runs."""

from stream_engine.data.comparisons import Label, Quadruplet, Triplet
from stream_engine.formats.options import EventOptions
from tests.formats.examples import Accepts, Rejects

_ABC = Triplet("a", "b", "c")
ACCEPTS = [
    Accepts(b'{"anchor":"a","near":"b","far":"c"}', [_ABC]),
    Accepts(b'{"type":"triplet","anchor":"a","near":"b","far":"c"}\r\n\r\n  \n', [_ABC]),
    Accepts(b'{"type":null,"far":"c","near":"b","anchor":"a","weight":null,"worker":null}', [_ABC]),
    Accepts(
        b' {"anchor":"a", "near" :"b","far":"c", "id":1, "worker":"w", "time":"2024-05-01T12:00:00Z", "weight":0}\t\n',
        [_ABC],
    ),
    Accepts(b'{"anchor":"a","near":"b","far":"c","time":1714564800.5,"weight":1e100,"rt":{"deep":[1,{}]}}', [_ABC]),
    Accepts(b'{"anchor":5,"near":-7,"far":"05"}', [Triplet("5", "-7", "05")]),
    Accepts(
        b'{"anchor":123456789012345678901234567890,"near":"b","far":"c"}',
        [Triplet("123456789012345678901234567890", "b", "c")],
    ),
    Accepts(
        '{"anchor":"\u00e9","near":"e\u0301","far":"\\u0041"}'.encode(), [Triplet("\u00e9", "e\u0301", "A")]
    ),  # NFC, NFD
    Accepts(b'{"anchor":"z","anchor":"a","near":"b","far":"c"}', [_ABC]),  # the last of equal fields holds
    Accepts(b'\xef\xbb\xbf{"anchor":"a","near":"b","far":"c"}', [_ABC]),
    Accepts(
        b'[{"anchor":"a","near":"b","far":"c"},\n {"anchor":"b","near":"a","far":"c"}]', [_ABC, Triplet("b", "a", "c")]
    ),
    Accepts(b'{\n "anchor": "a",\n "near": "b", "far": "c"\n}\n', [_ABC]),  # a message, pretty-printed
    Accepts(b"[]", []),
    Accepts(
        b'{"anchor":"a","near":"b","far":"c"}\n[{"anchor":"b","near":"a","far":"c"}]\n', [_ABC, Triplet("b", "a", "c")]
    ),
    Accepts(b'{"type":"quadruplet","near":["a","b"],"far":["c","d"]}', [Quadruplet(("a", "b"), ("c", "d"))]),
    Accepts(b'{"type":"quadruplet","near":["b","a"],"far":["c","a"]}', [_ABC]),
    Accepts(
        b'{"type":"odd_one_out","objects":["c","a","b"],"odd":"c"}', [Triplet("a", "b", "c"), Triplet("b", "a", "c")]
    ),
    Accepts(
        b'{"type":"most_central","objects":["a","b","c"],"central":"a"}',
        [Triplet("b", "a", "c"), Triplet("c", "a", "b")],
    ),
    Accepts(
        b'{"type":"pick","anchor":"a","shown":["b","c","d"],"chosen":["d","b"]}',
        [Triplet("a", "d", "c"), Triplet("a", "b", "c")],
    ),
    Accepts(
        b'{"type":"ranking","anchor":"a","ranked":["b","c","d"]}',
        [Triplet("a", "b", "c"), Triplet("a", "b", "d"), Triplet("a", "c", "d")],
    ),
    Accepts(
        b'{"type":"label","object":"a","label":3}\n{"type":"label","object":"a","label":null}',
        [Label("a", "3"), Label("a", None)],
    ),
    Accepts(
        b'{"l":"a","m":"b","r":"c","mid":"b","type":"ignored"}',
        [Triplet("a", "b", "c"), Triplet("c", "b", "a")],
        EventOptions("most_central", {"objects": ("l", "m", "r"), "central": ("mid",)}),
    ),
    Accepts(
        b'{"a":1,"b":2,"odd":3}',
        [Triplet("1", "2", "3"), Triplet("2", "1", "3")],
        EventOptions("odd_one_out", {"objects": ("a", "b", "odd")}),
    ),
    Accepts(
        b'{"anchor":"a","near":"b","far":"c","ok":true,"n":1.50}\n{"ok":true,"anchor":5.5}\n{"ok":true,"n":1.5}',
        [_ABC],
        EventOptions(where={"ok": "true", "n": "1.50"}),
    ),
    Accepts(b'{"type":"pick","anchor":"a","shown":["b","c"],"chosen":"b"}', [_ABC]),
    Accepts(
        b'{"type":"pick","anchor":"a","shown":["b","c"],"chosen":0}\n{"anchor":"a","near":"b","far":"c"}',
        [_ABC, _ABC],
        EventOptions(answers_by="index"),
    ),
    Accepts(b'{"anchor":"a","near":"b","far":"c","n_near":2,"n_far":1.0}', [_ABC, _ABC, Triplet("a", "c", "b")]),
    Accepts(b'{"anchor":"a","near":"b","far":"c","n_near":null}', [_ABC]),
    Accepts(b'{"type":"quadruplet","near":["a","b"],"far":["c","d"],"n_far":1}', [Quadruplet(("c", "d"), ("a", "b"))]),
    Accepts(b'{"anchor":1.0,"near":"1.0","far":"c","time":"2015-05-29 03:46:14.384"}', [Triplet("1", "1.0", "c")]),
]
_PICK = b'{"type":"pick","anchor":"a","shown":["b","c"],"chosen":%s}'
REJECTS = [
    Rejects(b'{"anchor":"a","near":"b"', "not_parseable", "not JSON"),
    Rejects(b'{"anchor":"a","near":"b","far":"c"} {}', "not_parseable", "trailing characters"),
    Rejects(b'[{"anchor":"a"}', "not_parseable", "JSON object"),
    Rejects(b"null", "not_parseable", "JSON object"),
    Rejects(b'{"anchor":"\xff","near":"b","far":"c"}', "not_parseable", "UTF-8"),
    Rejects(b'{"anchor":"a","near":"b","far":"c","x":"\xff"}', "not_parseable", "UTF-8"),
    Rejects(b'{"anchor":"\\ud800","near":"b","far":"c"}', "not_parseable", "not JSON"),
    Rejects(b'{"anchor":"a","near":"b","far":"c","x":NaN}', "not_parseable", "not JSON"),
    Rejects(b'{"x":' + b"[" * 5000 + b"]" * 5000 + b"}", "not_parseable", "nested"),
    Rejects(b"\x00\x01\x02", "not_parseable", "not JSON"),
    Rejects(b'{"anchor":"a","near":"b","far":"c","n_near":-1}', "bad_votes", "n_near is -1"),
    Rejects(b'{"anchor":"a","near":"b","far":"c","n_far":1000001}', "bad_votes", "from 0 to 1,000,000"),
    Rejects(b'{"type":"duel"}', "unknown_type", "'duel'"),
    Rejects(b'{"type":1,"anchor":"a"}', "unknown_type", "type 1 is unknown"),
    Rejects(b'{"anchor":"a","near":"b"}', "missing_field", "far"),
    Rejects(b"{}", "missing_field", "probe (as anchor)", EventOptions(columns={"anchor": ("probe",)})),
    Rejects(b'{"type":"label","object":"a"}', "missing_field", "label"),
    Rejects(
        b'{"anchor":1.5,"near":"b","far":"c"}',
        "wrong_type",
        "anchor … (1.5)",
    ),
    Rejects(b'{"anchor":true,"near":"b","far":"c"}', "wrong_type", "anchor … boolean"),
    Rejects(b'{"anchor":"a","near":null,"far":"c"}', "wrong_type", "near … null"),
    Rejects(b'{"anchor":1e999,"near":"b","far":"c"}', "wrong_type", "anchor … number"),
    Rejects(b'{"anchor":"a","near":"b","far":"c","worker":1.5}', "wrong_type", "worker … number (1.5)"),
    Rejects(_PICK % b"{}", "wrong_type", "chosen … object ({})"),
    Rejects(_PICK % b"[null]", "wrong_type", "chosen … null"),
    Rejects(
        b'{"type":"quadruplet","near":["a","b","c"],"far":["c","d"]}',
        "wrong_type",
        "near holds 3 names; quadruplet needs 2",
    ),
    Rejects(b'{"anchor":"","near":"b","far":"c"}', "empty_name", "anchor is empty"),
    Rejects(b'{"anchor":"' + b"x" * 1025 + b'","near":"b","far":"c"}', "name_too_long", "1,025 bytes"),
    Rejects(_PICK % b"[" + b",".join([b"1"] * 10_001) + b"]}", "not_parseable", "not JSON"),
    Rejects(
        _PICK % (b"[" + b",".join([b"1"] * 10_001) + b"]"),
        "list_too_long",
        "chosen … 10,001 entries … 10,000",
    ),
    Rejects(
        b'{"anchor":"a","near":"a","far":"c"}',
        "not_distinct",
        "anchor … near ('a')",
    ),
    Rejects(b'{"anchor":5,"near":"b","far":"5"}', "not_distinct", "anchor equals far ('5')"),
    Rejects(b'{"type":"quadruplet","near":["a","a"],"far":["c","d"]}', "not_distinct", "near … 'a'"),
    Rejects(
        b'{"type":"quadruplet","near":["a","b"],"far":["b","a"]}',
        "not_distinct",
        "near … ('a', 'b')",
    ),
    Rejects(
        b'{"type":"pick","anchor":"a","shown":["b","a"],"chosen":["b"]}', "not_distinct", "anchor equals shown[1] ('a')"
    ),
    Rejects(_PICK % b'["b","b"]', "not_distinct", "chosen[0] equals chosen[1] ('b')"),
    Rejects(
        b'{"type":"ranking","anchor":"a","ranked":["b","c","b"]}', "not_distinct", "ranked[0] equals ranked[2] ('b')"
    ),
    Rejects(b'{"type":"odd_one_out","objects":["a","b","c"],"odd":"d"}', "not_shown", "odd ('d')"),
    Rejects(_PICK % b'["b","a"]', "not_shown", "chosen[1] ('a')"),
    Rejects(_PICK % b"[]", "nothing_chosen", "chosen"),
    Rejects(b'{"type":"ranking","anchor":"a","ranked":["b"]}', "nothing_chosen", "ranked … 1 object"),
    Rejects(_PICK % b'["c","b"]', "everything_chosen", "chosen … 2 objects shown"),
    Rejects(
        b'{"anchor":"a","near":"b","far":"c","weight":-1}',
        "bad_weight",
        "weight … -1 … 0 … 1e+100",
    ),
    Rejects(b'{"anchor":"a","near":"b","far":"c","weight":"1"}', "bad_weight", "weight is '1'"),
    Rejects(b'{"anchor":"a","near":"b","far":"c","weight":1e999}', "bad_weight", "weight is inf"),
    Rejects(b'{"anchor":"a","near":"b","far":"c","time":"2024-05-01T12:00"}', "bad_time", "time is '2024-05-01T12:00'"),
    Rejects(b'{"anchor":"a","near":"b","far":"c","time":"12"}', "bad_time", "RFC 3339"),
]
