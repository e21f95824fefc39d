"""What CSV events must decode to, and what is refused for which reason."""

from stream_engine.data.comparisons import Label, Quadruplet, Triplet
from stream_engine.formats.options import EventOptions
from tests.formats.examples import Accepts, Rejects

_ABC, _ACB, _HEAD = Triplet("a", "b", "c"), Triplet("a", "c", "b"), b"anchor,near,far\n"
_ALL = b"type,anchor,near,far,near_i,near_j,far_i,far_j,objects,odd,central,shown,chosen,ranked,object,label\n"
ACCEPTS = [
    Accepts(b"a,b,c\n", [_ABC], header=_HEAD),
    Accepts(b"anchor,near,far\na,b,c\n", [_ABC]),  # a whole file in one value
    Accepts(b"", [], header=_HEAD),
    Accepts(b"anchor,near,far\n", []),
    Accepts(b"\xef\xbb\xbffar,rt,anchor,near\r\nc,9,a,b\r\n\r\n", [_ABC]),
    Accepts(b"05, 5,5 x\t\n", [Triplet("05", "5", "5 x")], header=_HEAD),
    Accepts(
        b"16.0,-3.0,1.50\n05.0,0.0,1e3\n", [Triplet("16", "-3", "1.50"), Triplet("05.0", "0", "1e3")], header=_HEAD
    ),
    Accepts(b"a;b,2;c\n", [Triplet("a", "b,2", "c")], header=b"anchor;near;far\n"),
    Accepts(b"sep=|\nanchor|near|far\na|b,2|c\n", [Triplet("a", "b,2", "c")]),
    Accepts(b"a\tb c\t c\n", [Triplet("a", "b c", "c")], header=b"anchor\tnear\tfar\n"),
    Accepts(b"a,b,c,2,\na,b,c,,1\na,b,c,0,0\n", [_ABC, _ABC, _ACB], header=b"anchor,near,far,n_near,n_far\n"),
    Accepts(
        b"a|b|c,3,1.0\n",
        [Triplet("a", "b", "c"), Triplet("b", "a", "c")],
        EventOptions("odd_one_out", answers_by="position"),
        b"objects,odd,central\n",
    ),
    Accepts(b"a,b,c,2015-05-29 03:46:14.384\n", [_ABC], header=b"anchor,near,far,time\n"),
    Accepts(b'"a","b\nb","c""c,"\na,"b"b,c"c', [Triplet("a", "b\nb", 'c"c,'), Triplet("a", "bb", 'c"c')], header=_HEAD),
    Accepts(
        b"a,b,c,1e3,2024-05-01T12:00:00Z,w\na,b,c,,,\n", [_ABC, _ABC], header=b"anchor,near,far,weight,time,worker\n"
    ),
    Accepts(
        b",a,b,c,,,,,,,,,,,,\nquadruplet,,,,a,b,c,d,,,,,,,,\nodd_one_out,,,,,,,,a|b|c,c,,,,,,\n"
        b"most_central,,,,,,,,a|b|c,,a,,,,,\npick,a,,,,,,,,,,b|c,c,,,\nranking,a,,,,,,,,,,,,b|c,,\n"
        b"label,,,,,,,,,,,,,,a,x\nlabel,,,,,,,,,,,,,,a,\n",
        [
            _ABC,
            Quadruplet(("a", "b"), ("c", "d")),
            Triplet("a", "b", "c"),
            Triplet("b", "a", "c"),
            Triplet("b", "a", "c"),
            Triplet("c", "a", "b"),
            Triplet("a", "c", "b"),
            _ABC,
            Label("a", "x"),
            Label("a", None),
        ],
        header=_ALL,
    ),
    Accepts(
        b"a,b,a,c,x\na,b,a,c,y\n",
        [_ABC],
        EventOptions("quadruplet", where={"who": "x"}),
        b"near_i,near_j,far_i,far_j,who\n",
    ),
    Accepts(
        b"a,b,c,7\n",
        [Triplet("a", "b", "c"), Triplet("b", "a", "c")],
        EventOptions("odd_one_out", {"objects": ("a", "b", "odd"), "odd": ("odd",)}),
        b"a,b,odd,rt\n",
    ),
]
REJECTS = [
    Rejects(b"a,b\n", "not_parseable", "2 fields … 3", header=_HEAD),
    Rejects(b"a,b,c,d\n", "not_parseable", "4 fields", header=_HEAD),
    Rejects(b'a,b,"c\n', "not_parseable", "never closed", header=_HEAD),
    Rejects(b"a,b,\xff\n", "not_parseable", "UTF-8", header=_HEAD),
    Rejects(b"duel,a,b,c\n", "unknown_type", "type 'duel' is unknown", header=b"type,anchor,near,far\n"),
    Rejects(b"ranking,a,b,c\n", "missing_field", "ranked", header=b"type,anchor,near,far\n"),
    Rejects(b"a,,c\n", "empty_name", "near is empty", header=_HEAD),
    Rejects(b"a," + b"x" * 1025 + b",c\n", "name_too_long", "near … 1,025 bytes", header=_HEAD),
    Rejects(b"a,b,b\n", "not_distinct", "near equals far ('b')", header=_HEAD),
    Rejects(
        b"a|b,a\n",
        "wrong_type",
        "objects holds 2 names; odd_one_out needs 3",
        EventOptions("odd_one_out"),
        b"objects,odd\n",
    ),
    Rejects(b"a|b|c,d\n", "not_shown", "odd ('d')", EventOptions("odd_one_out"), b"objects,odd\n"),
    Rejects(b"a,b|c,\n", "nothing_chosen", "chosen", EventOptions("pick"), b"anchor,shown,chosen\n"),
    Rejects(b"a,b||c,b\n", "empty_name", "shown[1] is empty", EventOptions("pick"), b"anchor,shown,chosen\n"),
    Rejects(b"a,b|c,c|b\n", "everything_chosen", "chosen … 2", EventOptions("pick"), b"anchor,shown,chosen\n"),
    Rejects(
        b"a," + b"|".join([b"b"] * 10_001) + b",b\n",
        "list_too_long",
        "shown … 10,001 entries",
        EventOptions("pick"),
        b"anchor,shown,chosen\n",
    ),
    Rejects(b"a,b,c,nan\n", "bad_weight", "weight is 'nan'", header=b"anchor,near,far,weight\n"),
    Rejects(b"a,b,c,1_0\n", "bad_weight", "weight is '1_0'", header=b"anchor,near,far,weight\n"),
    Rejects(b"a,b,c,1.5\n", "bad_votes", "n_near is '1.5'", header=b"anchor,near,far,n_near\n"),
    Rejects(
        b"a|b|c,4\n",
        "not_shown",
        "odd … '4' … 1 … 3",
        EventOptions("odd_one_out", answers_by="position"),
        b"objects,odd\n",
    ),
    Rejects(b"a,b,c,yesterday\n", "bad_time", "time is 'yesterday'", header=b"anchor,near,far,time\n"),
]
