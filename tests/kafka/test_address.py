"""What can be said without a broker: addresses, options, secrets, and where reading begins."""

import pytest

from connectors import Position, SourceFailed, UnusableSource, open_source
from connectors.kafka.client import Range, known_to, parse_address, scrubbed
from connectors.kafka.confluent_client import librdkafka_options
from connectors.kafka.source import CLIENTS, check_options
from connectors.kafka.start_offsets import offset_loss, starting_points
from tests.support.facts import states, stating


@pytest.mark.parametrize(
    "rest, expected",
    [
        ("host:9092", "topic"),
        ("host/t", "got server 'host', expected host:port"),
        ("a:1/t/u", "got topic 't/u'"),
        ("a:1/" + "t" * 250, "249"),
        ("a:1/t?partition=1", "unknown parameter 'partition'; known: partitions"),
        ("a:1/t?partitions=1,x", "got partitions '1,x'"),
        ("a:1/t?partitions=", "got partitions ''"),
    ],
)
def test_bad_addresses_are_said_in_a_line(rest, expected):
    with pytest.raises(UnusableSource) as error:
        parse_address(rest)
    assert states(str(error.value), expected) and "\n" not in str(error.value)


def test_good_addresses():
    address = parse_address("[::1]:9092, b.example:1/a.b_c-1?partitions=0")
    assert str(address) == "kafka://[::1]:9092,b.example:1/a.b_c-1"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "more, expected",
    [
        ({"start": "2026-11-01"}, "'2026-11-01' … time zone"),
        ({"start": "2126-11-01T00:00Z"}, "2126-11-01 … future"),
        ({"on_offset_loss": "skip"}, "fail, earliest"),
        ({"shard": (2, 2)}, "got shard 2/2, expected i/n"),
        ({"shard": (0, 1), "partitions": [1]}, "one"),
        ({"start": "none"}, "choose start = earliest or latest"),
    ],
)
def test_arguments_are_checked_before_connecting(client, more, expected):
    with pytest.raises(UnusableSource) as error:
        given = {"start": "earliest", "options": {"client": client}} | more
        open_source("kafka://127.0.0.1:1/t", {"u/0": Position(1)}, **given)
    assert states(str(error.value), expected)


def test_secrets_are_taken_out_of_what_is_said():
    options = {
        "sasl_plain_password": "p1",
        "ssl.key.password": "p2",
        "sasl.oauthbearer.client.secret": "p3",
        "proxy_url": "socks5://u:p4@h",
        "ssl.key.pem": "p5",
        "sasl_plain_username": "user",
        "ssl_password": "",
    }
    assert scrubbed("p1 p2\n p3 socks5://u:p4@h p5 user", options) == "*** *** *** *** *** user"


def test_each_library_gets_its_own_names():
    both = {"client": "confluent", "security.protocol": "SSL", "security_protocol": "SSL", "group.id": "g"}
    assert known_to({"security_protocol": ""}, {}, both) == {"security_protocol": "SSL"}
    assert librdkafka_options(both) == {"security.protocol": "SSL", "group.id": "g"}
    check_options(both)
    check_options({"client": "confluent", "max_poll_records": 10})
    check_options({"security_protocol": "SSL", "group_id": "g", "acks": "all", "max_poll_records": 10})
    for wrong in (
        {"client": "confluent", "security_protocol": "SSL"},  # would connect without encryption
        {"client": "confluent", "no.such.option": 1},
        {"client": "kafka-python", "group.id": "g"},
        {"client": "nonsense"},
        {"group.id": "g"},
        {"no_such_option": 1},
        {"max_poll_records": 0},
    ):
        with pytest.raises(UnusableSource, match="kafka"):
            check_options(wrong)


def test_where_reading_goes_on_never_skips_what_is_there_and_never_repeats_what_was_read():
    """All small cases: a stored offset, what is left, the same topic or another, cut back or not."""
    for offset in range(5):
        for first in range(5):
            for end in range(first, 5):
                for mark, stored_mark in ((1, 1), (1, 2), (0, 2), (1, 0)):
                    for cut in (None, *range(-1, 5)):
                        loss = offset_loss(Position(offset, stored_mark), Range(first, end), mark, cut)
                        if loss is None:
                            assert first <= offset <= end and cut is None
                            assert mark == stored_mark or 0 in (mark, stored_mark)
                        elif mark and stored_mark and mark != stored_mark:
                            assert loss.go_on_at == first
                        else:
                            assert first <= loss.go_on_at <= end
                            if offset < first:
                                assert loss.go_on_at == first
                            elif cut is not None:
                                assert loss.go_on_at == min(max(cut, first), end)
                            elif mark and stored_mark:
                                assert loss.go_on_at == end < offset


def test_a_loss_is_refused_or_told_and_counted():
    given = parse_address("h:1/t"), {0: Position(5), 1: Position(3)}, {0: Range(7, 9), 1: Range(2, 4)}, 0
    with pytest.raises(SourceFailed, match=stating("partition 0 … 5 … offsets 7 to 8 … --on-offset-loss")):
        starting_points(*given, on_loss="fail")
    points = starting_points(*given, on_loss="earliest")
    (said,), (lost,) = points.notices, points.losses
    assert states(said, "partition 0 … 2 offsets are lost … 7") and lost[:4] == ("t/0", 5, 7, 2)
    assert {each: at.offset for each, at in points.positions.items()} == {0: 7, 1: 3}
