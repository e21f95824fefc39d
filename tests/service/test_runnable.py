"""`check-config` refuses what cannot run, and `run` refuses the same: one line, status 2, never a traceback."""

import contextlib
import io
import json
import re

import pytest

from stream_engine.__main__ import main
from tests.support.facts import states
from tests.support.process import engine, one_line

TOPIC = 'source = ["kafka://h:9092/votes"]\n'
REFUSED = {  # settings -> what is said
    "[input]\nshard = '3/2'": "input.shard: got '3/2', expected i/n with 0 <= i < n",
    "listen = 'nonsense'": "listen: got 'nonsense', expected HOST:PORT",
    "[http]\ntls_certificate = 'none.pem'\ntls_key = 'none.key'": "http.tls_certificate, http.tls_key: got .*none.pem",
    TOPIC + "[kafka]\nnonsense = 1": "kafka.nonsense: unknown",
    TOPIC + "[kafka]\n'security.protocl' = 'SSL'": "kafka.security.protocl: .*security_protocol",
    TOPIC + "[kafka]\nclient = 'confluent'\nsecurity_protocol = 'none'": "got security_protocol",
    TOPIC + "[kafka]\nmax_poll_records = 0": "1",
    "source = ['kafka://h:1/v?partitions=0']\n[input]\nshard = '0/2'": "one",
    "source = ['pulsar://h/votes']": "unknown scheme 'pulsar'",
    "source = ['FOLDER']": "is a directory",
    "source = ['FOLDER/a.csv.gz']\nfollow = true": "followed",
    "source = ['FOLDER/a.csv']\n[input]\nshard = '0/2'": "topic",
    "[input]\nlabels = 'none.csv'": "none.csv",
    "state = 'FOLDER/a.csv'": "state",
    "dead_letters = 'FOLDER/a.csv'": "dead_letters",
    "dead_letters = 'kafka://h:9092/dead'": "dead_letters: got kafka://h:9092/dead, expected a folder",
    "[kernels.a]\nfile = 'none.csv'": "kernels.a.file",
    '[input.where]\n"a\\u0000" = "x"': "input.where.a.*NUL",
    "[snapshot]\nevery = 99999999999999999999": "64",
    "x = " + "[" * 2000 + "]" * 2000: "not TOML",
}


@pytest.fixture
def folder(tmp_path):
    for name in ("a.csv", "a.csv.gz", "a.ods"):
        (tmp_path / name).write_text("anchor,near,far\n")
    return tmp_path


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_run_is_refused_by_both_verbs(folder, text):
    file = folder / "engine.toml"
    file.write_text(text.replace("FOLDER", str(folder)) + "\n")
    said = one_line(engine("check-config", file, status=2).stderr)
    assert re.search(REFUSED[text], said), said
    asked = () if re.match("source|state", text) else (folder / "a.csv",)
    if text.startswith(TOPIC) or not asked:
        assert (
            one_line(engine("run", "--config", file, "--state", folder / "s", status=2).stderr) == said
            or "state" in text
        )
    if "source" not in text and "state" not in text:
        assert one_line(engine("run", *asked, "--config", file, "--state", folder / "s", status=2).stderr) == said
    assert not (folder / "s").exists()


def test_a_file_that_is_none(folder):
    (folder / "latin.toml").write_bytes(b'state = "\xe9"\n')
    for file, said in (
        (folder, "Is a directory"),
        (folder / "latin.toml", "utf-8"),
        (folder / "no.toml", "No such file"),
    ):
        assert states(one_line(engine("check-config", file, status=2).stderr), said)


def test_the_verdict_comes_before_the_settings_and_these_alone_are_standard_output(tmp_path):
    (tmp_path / "a.toml").write_text('state = "s"\n')
    both = io.StringIO()
    with contextlib.redirect_stdout(both), contextlib.redirect_stderr(both):
        assert main(["check-config", str(tmp_path / "a.toml")]) == 0
    assert "a.toml: " in both.getvalue().partition("{")[0]
    assert json.loads(engine("check-config", tmp_path / "a.toml").stdout)["state"] == "s"
