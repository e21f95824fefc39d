"""`check_format` accepts the decoders that there are, and refuses those that break a law."""

import pytest

from stream_engine.data.comparisons import Quadruplet, Triplet
from stream_engine.formats.csv_events import Decoder as CsvDecoder
from stream_engine.formats.json_events import Decoder
from stream_engine.testing import check_format

ABC = b'{"anchor":"a","near":"b","far":"c"}'
TWO = b'{"type":"quadruplet","near":["a","b"],"far":["c","d"]}\n' + ABC
ACCEPTS = [(ABC, [Triplet("a", "b", "c")]), (TWO, [Quadruplet(("a", "b"), ("c", "d")), Triplet("a", "b", "c")])]
REJECTS = [(b"{", "not_parseable"), (ABC.replace(b'"b"', b'"a"'), "not_distinct")]


class Forgetful(Decoder):
    """Decodes the second value that it is given as if it were the first one."""

    def __call__(self, value, header=b""):
        self.first = getattr(self, "first", value)
        return super().__call__(self.first, header)


class Swapped(Decoder):
    def __call__(self, value, header=b""):
        done = super().__call__(value, header)
        return done._replace(triplets=done.triplets[:, [0, 2, 1]])


class LosesRefusals(Decoder):
    def many(self, values):
        done, _ = super().many(values)
        return done, []


def test_the_decoders_keep_the_laws():
    check_format(Decoder, ACCEPTS, REJECTS)
    rows = [(b"a,b,c\n", [Triplet("a", "b", "c")])]
    check_format(CsvDecoder, rows, [(b"a,a,c\n", "not_distinct")], header=b"anchor,near,far\n")


@pytest.mark.parametrize("broken", [Forgetful, Swapped, LosesRefusals])
def test_a_broken_decoder_is_refused(broken):
    with pytest.raises(AssertionError):
        check_format(broken, ACCEPTS, REJECTS)
