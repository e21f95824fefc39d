"""Keys that are made of one secret, and how often each may come."""

import re

import pytest

from stream_engine.collect import gatekeeper
from stream_engine.collect.access import Access
from stream_engine.collect.gatekeeper import Rates, client_behind


def test_links_and_codes_that_were_given_out_stay_right_for_ever(tmp_path):
    """HMAC-SHA-256 of what a key is for, with the secret of the study."""
    (tmp_path / "secret").write_text("5e" * 32)
    access = Access(tmp_path)
    assert (access.study, access.owner) == ("e5a70d", "c0b0134920982b2648bab3ade6ab1876")
    assert (access.key("P-1"), access.completion_code("P-1")) == ("2150631fb2539c2f", "62C7C8AD")
    (tmp_path / "other").mkdir()
    assert Access(tmp_path / "other").owner != access.owner


def test_a_key_is_that_of_one_participant(tmp_path):
    access = Access(tmp_path)
    assert access.is_key_of("w", access.key("w")) and access.is_key_of("ü", access.key("ü"))
    for wrong in ("", access.key("v"), access.key("w")[:-1], access.key("w").upper(), "é"):
        assert not access.is_key_of("w", wrong)


def test_a_link_holds_whatever_a_code_holds(tmp_path):
    access = Access(tmp_path)
    link = access.link("http://h:1/p", "a b&key=x/ü", "PROLIFIC PID")
    assert link == f"http://h:1/p/ask?PROLIFIC%20PID=a%20b%26key%3Dx/%C3%BC&key={access.key('a b&key=x/ü')}"


def test_the_secret_is_for_its_owner_alone_also_where_a_backup_has_forgotten_that(tmp_path):
    Access(tmp_path)
    secret = tmp_path / "secret"
    assert secret.stat().st_mode & 0o777 == 0o600 and re.fullmatch("[0-9a-f]{64}", secret.read_text())
    owner = Access(tmp_path).owner
    secret.chmod(0o644)
    secret.write_text(secret.read_text() + "\n")  # as an editor leaves it
    assert Access(tmp_path).owner == owner and secret.stat().st_mode & 0o777 == 0o600


def test_twenty_seconds_worth_may_come_at_once_and_then_so_many_a_second():
    now = [0.0]
    rates = Rates(2.0, lambda: now[0])
    come = lambda n, key="a": sum(rates.allowed(key) for _ in range(n))  # noqa: E731
    assert come(100) == 40 and come(1, "b") == 1
    now[0] = 1.5
    assert come(10) == 3
    now[0] = 1000.0
    assert come(100) == 40


def test_those_unseen_for_long_are_forgotten(monkeypatch):
    monkeypatch.setattr(gatekeeper, "_MAX_REMEMBERED", 2)
    rates = Rates(0.01, lambda: 0.0)  # one at once
    assert [rates.allowed(key) for key in "aba"] == [True, True, False]
    assert rates.allowed("c")  # b had not been seen for longest
    assert not rates.allowed("a")
    assert rates.allowed("b")


@pytest.mark.parametrize(
    ("forwarded", "seen"),
    [("10.0.0.7", "10.0.0.7"), ("evil, 2001:DB8::1 ", "2001:DB8::1"), ("1.2.3.4, unknown", "peer"), ("", "peer")],
)
def test_the_last_address_that_a_proxy_wrote_counts(forwarded, seen):
    assert client_behind(forwarded, "peer") == seen
