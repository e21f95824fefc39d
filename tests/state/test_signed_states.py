"""States under a key: what this engine wrote is read, whatever else is refused in one line, and secrets stay secret."""

import json
from pathlib import Path

import pytest

from stream_engine.data.container import NotTrusted
from stream_engine.data.signatures import ACCEPT_UNSIGNED, KEY, KEY_FILE, BadKey, signing_of_environment, signing_with
from stream_engine.state import snapshot as snapshots
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store
from tests.support import crafted_worlds as worlds
from tests.support.facts import states, stating
from tests.support.process import engine, one_line

ONE, TWO = "a key that nobody guesses", "another key that nobody guesses"
EVENTS = b'{"anchor":"a","near":"b","far":"c"}\n{"anchor":"b","near":"a","far":"c"}\n'


@pytest.fixture
def events(tmp_path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_bytes(EVENTS)
    return path


def settings(folder: Path, more: str = "", table: str = "signing") -> Path:
    path = folder / "settings.toml"
    path.write_text(f'[{table}]\nkey = {{ env = "MY_KEY" }}\n{more}\n[refits]\nkinds = ["spectral"]\n')
    return path


def run(events: Path, *more, status: int | None = 0):
    return engine("run", events, "--state", events.parent / "state", *more, status=status)


def test_a_signed_state_is_read_with_its_key_alone(events, monkeypatch):
    """By run, by verbs that read no settings, and by the refit workers of a run."""
    state = events.parent / "state"
    monkeypatch.setenv("MY_KEY", ONE)
    run(events, "--config", settings(events.parent))
    files = [*state.rglob("*.snapshot"), *state.rglob("*.artifact")]
    assert len(files) >= 2 and all(path.read_bytes()[8] == 2 for path in files)
    for key, line in ((None, "STREAM_ENGINE_STATE_KEY"), (TWO, "another key")):
        monkeypatch.delenv(KEY, raising=False)
        if key:
            monkeypatch.setenv(KEY, key)
        for verb in (["inspect"], ["export", "--out", events.parent / "out"], ["refit", "spectral"], ["ask"]):
            done = engine(verb[0], "--state", state, *verb[1:], status=1)
            assert states(one_line(done.stderr), line) and ONE not in done.stderr
    monkeypatch.delenv(KEY)
    (events.parent / "key").write_text(ONE + "\n")
    monkeypatch.setenv(KEY_FILE, str(events.parent / "key"))
    found = json.loads(engine("inspect", "--state", state, "--json").stdout)
    assert found["summary"]["triplets"] == 2 and "spectral" in found["artifacts"]


def test_the_key_of_the_settings_is_that_of_who_is_excluded_and_of_verify(events, monkeypatch):
    monkeypatch.setenv("MY_KEY", ONE)
    events.write_bytes(b'{"anchor":"a","near":"b","far":"c","worker":"x"}\n' + EVENTS)
    config = settings(events.parent)
    for more in ([], ["--exclude", "participant=x"]):
        run(events, "--config", config, "--no-refits", *more)
    assert Store(events.parent / "state").excluded() == ("x",)
    engine("verify", "--state", events.parent / "state", "--config", config)


def test_the_key_of_the_settings_is_that_of_refit_predict_and_ask(events, monkeypatch):
    monkeypatch.setenv("MY_KEY", ONE)
    events.write_bytes(b'{"anchor":"a","near":"b","far":"c","worker":"x"}\n' + EVENTS)
    reads = ["--state", events.parent / "state", "--config", settings(events.parent)]
    run(events, "--config", reads[-1], "--no-refits")
    engine("refit", "embedding", *reads)
    (artifact,) = events.parent.rglob("*.artifact")
    assert artifact.read_bytes()[8] == 2  # signed
    engine("ask", "--n", 1, "--out", events.parent / "questions.jsonl", *reads)
    assert len((events.parent / "questions.jsonl").read_text().splitlines()) == 1
    answered = engine("predict", events, "--exclude", "participant=x", *reads).stdout.splitlines()
    assert len(answered) == 3 and all(json.loads(line)["p"] is not None for line in answered)


def test_what_forget_replaces_in_a_signed_state_is_gone(events, monkeypatch):
    monkeypatch.setenv(KEY, ONE)
    run(events)
    state = events.parent / "state"
    engine("forget", "--state", state, "--object", "c")
    assert [path.name for path in state.rglob("*.snapshot")] == ["000000000002.snapshot"]
    assert not list(state.rglob("*.artifact"))


def test_results_of_a_signed_state_are_sent(events, monkeypatch):
    """By a process that has the key of the settings from the run."""
    monkeypatch.setenv("MY_KEY", ONE)
    table = events.parent / "objects.jsonl"
    run(events, "--config", settings(events.parent, f'[publish]\nobjects = "jsonl://{table}"\n'))
    assert [json.loads(line)["key"] for line in table.read_text().splitlines()] == ["a", "b", "c"]


def test_an_unsigned_state_is_taken_over_when_that_is_said(events, monkeypatch):
    run(events, "--no-refits")
    monkeypatch.setenv("MY_KEY", ONE)
    config = settings(events.parent)
    done = run(events, "--config", config, "--no-refits", status=1)
    assert "accept_unsigned" in one_line(done.stderr.splitlines()[-1])
    events.write_bytes(EVENTS * 2)
    run(events, "--config", settings(events.parent, "accept_unsigned = true"), "--no-refits")
    newest = max((events.parent / "state" / "snapshots").iterdir())
    assert newest.read_bytes()[8] == 2
    run(events, "--config", settings(events.parent), "--no-refits")


def test_a_newer_snapshot_of_a_stranger_stops_the_run(events, monkeypatch):
    """Passing it over would go on from an older state than the newest there may be: it is left alone, and said."""
    monkeypatch.setenv(KEY, ONE)
    run(events, "--no-refits")
    store = Store(events.parent / "state")
    newest = store.latest().snapshot
    forged = b"".join(snapshots.encode(newest._replace(sequence=9), signing_with(TWO))[0])
    store.snapshot_path(9).write_bytes(forged)
    assert "000000000009" in one_line(run(events, "--no-refits", status=1).stderr)


def test_the_digest_is_of_the_content_and_no_signature_fits_other_content():
    made = Engine(("adds3",), False)
    worlds.learned(made)
    plain, signed = (snapshots.encode(made.snapshot()._replace(sequence=1), key) for key in (*[signing_with(ONE)] * 2,))
    bare = snapshots.encode(made.snapshot()._replace(sequence=1))
    assert plain[1].digest == signed[1].digest == bare[1].digest and plain[0][-1] == signed[0][-1] != bare[0][-1]
    data = bytearray(b"".join(signed[0]))
    assert snapshots.decode(data, signing_with(ONE)).digest == bare[1].digest
    for place in range(len(data) - 32, len(data)):
        data[place] ^= 1
        with pytest.raises(NotTrusted):
            snapshots.decode(data, signing_with(ONE))
        data[place] ^= 1
    other = b"".join(snapshots.encode(made.snapshot(), signing_with(ONE))[0])
    with pytest.raises(NotTrusted):
        snapshots.decode(other[:-32] + bytes(data[-32:]), signing_with(ONE))
    with pytest.raises(NotTrusted):
        snapshots.decode(b"".join(bare[0]), signing_with(ONE))
    assert snapshots.decode(b"".join(bare[0]), signing_with(ONE, accept_unsigned=True)).digest == bare[1].digest


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({KEY: "short"}, "5 characters … 16"),
        ({KEY: ONE, KEY_FILE: "x"}, "STREAM_ENGINE_STATE_KEY"),
        ({KEY_FILE: "/nowhere/key"}, "No such file"),
        ({KEY: ONE, ACCEPT_UNSIGNED: "yes"}, "got 'yes', expected 0 or 1"),
    ],
)
def test_a_bad_key_is_said_and_not_shown(environment, line):
    with pytest.raises(BadKey, match=stating(line)):
        signing_of_environment(environment)


def test_a_key_in_the_settings_is_a_reference_and_is_hidden(events, monkeypatch):
    path = events.parent / "settings.toml"
    path.write_text(f'state = "s"\n[signing]\nkey = "{ONE}"\n')
    done = engine("check-config", path, status=2)
    assert "signing.key: expected { env" in one_line(done.stderr) and ONE not in done.stderr
    monkeypatch.setenv("MY_KEY", ONE)
    path.write_text('state = "s"\n[signing]\nkey = { env = "MY_KEY" }\n')
    shown = engine("check-config", path).stdout
    assert ONE not in shown
    assert "***" in shown
    assert ONE not in repr(signing_with(ONE))
