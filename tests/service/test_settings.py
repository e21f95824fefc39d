"""One file, the environment and the command line: precedence, and a clear sentence for everything that is wrong."""

import json
import re

import pytest
from msgspec.structs import fields

from stream_engine.data.comparisons import Triplet
from stream_engine.input.settings import BadSettings, Settings, SnapshotSettings
from stream_engine.input.settings.loading import load, mapping, plain_settings, shard
from stream_engine.refits import CannotRefit, refit_module
from stream_engine.state.engine import Engine
from tests.support.facts import states


def written(tmp_path, text):
    path = tmp_path / "engine.toml"
    path.write_text(text)
    return str(path)


def test_command_line_over_environment_over_file_over_default(tmp_path):
    path = written(tmp_path, "[snapshot]\nevery = 10\ninterval = 2.5\nkeep = 7\n")
    environment = {"STREAM_ENGINE__SNAPSHOT__EVERY": "20", "STREAM_ENGINE__SNAPSHOT__INTERVAL": "9", "HOME": "/x"}
    found = load(path, {"snapshot.every": 30, "snapshot.keep": None}, environment).snapshot
    assert (found.every, found.interval, found.keep) == (30, 9.0, 7)
    assert load(None, {}, {}).snapshot == SnapshotSettings()


@pytest.mark.parametrize(
    "text, said",
    [
        ("[snapshot]\nevry = 1\n", "snapshot.evry"),
        ("[snapshot]\nevery = -1\n", "snapshot.every: expected `int` >= 0, got -1"),
        ("[guard]\nlevel = 'first'\n", "guard: expected `bool`, got `table`"),
        ("source = 'a.csv'\n", "source: expected `list`, got `str`"),
        ("[input]\ncolumns.near = 3\n", "input.columns[...]: expected `str`, got `int`"),
        (
            "[refits.params.embedding]\nkernel = 'x'\n",
            "embedding.kernel … 'x'",
        ),
        ("[http]\ntoken = 'too short'\n", "http.token: expected `str` of length >= 16, got '***'"),
        ("[snapshot]\ninterval = -5\n", "snapshot.interval: … 0.0, got -5"),
        ("[refits.params.sdp_clustering]\ntest = 99\n", "refits.params.sdp_clustering.test … clusters"),
        ('[refits.params.sdp_clustering]\nk_by = "spur"\n', "refits.params.sdp_clustering.k_by … clusters"),
        ("[refits.params.sdp]\nk = 3\n", "refits.params.sdp … sdp_clustering?"),
        ("= 3\n", "not TOML"),
        ("[input]\nstart = 2026-11-01T00:00:00\n", "input … '2026-11-01T00:00:00' … time zone"),
        (
            "[kafka]\nsasl_plain_password = { env = 'NOT_THERE' }\n",
            "kafka.sasl_plain_password: … NOT_THERE, not set",
        ),
        ("[kafka]\nssl_password = { file = '/not/there' }\n", "/not/there"),
    ],
    ids=range(15),
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, text, said):
    with pytest.raises(BadSettings) as error:
        load(written(tmp_path, text), {}, {})
    assert states(str(error.value), said) and "\n" not in str(error.value)


def test_a_table_is_not_replaced_by_a_value_of_the_command_line(tmp_path):
    (tmp_path / "c.toml").write_text('[state]\ndirectory = "x"\n')
    with pytest.raises(BadSettings, match="^state: got a table, expected a value"):
        load(str(tmp_path / "c.toml"), {"state": "y"}, {})


@pytest.mark.parametrize("kind", ["embedding", "clusters", "kernel_learning", "dimensions", "reliability"])
def test_a_refit_without_counts_names_a_key_of_the_settings(kind):
    module, engine = refit_module(kind), Engine(("adds3",), guard=False)
    engine.learn_many([Triplet("a", "b", "c")])
    with pytest.raises(CannotRefit) as caught:
        module.refit(engine.snapshot(), module.Params(), 0)
    named = re.findall("`(.*?)`", str(caught.value))
    assert named and set(named) <= {field.encode_name for field in fields(Settings)}


def test_a_wrong_environment_key_is_named():
    with pytest.raises(BadSettings, match="STREAM_ENGINE__DRIFT__ENABELD: drift.enabeld"):
        load(None, {}, {"STREAM_ENGINE__DRIFT__ENABELD": "true"})


def test_secrets_reach_the_client_and_never_the_screen(tmp_path):
    (tmp_path / "pw").write_text("from-a-file\n")
    path = written(
        tmp_path,
        f"""
        [kafka]
        sasl_plain_username = "me"
        sasl_plain_password = {{ env = "PW" }}
        ssl_password = {{ file = "{tmp_path / "pw"}" }}
        sasl_oauth_token_provider = "plain-but-hidden"
        """,
    )
    found = load(path, {}, {"PW": "hunter2"})
    assert found.kafka["sasl_plain_password"] == "hunter2" and found.kafka["ssl_password"] == "from-a-file"
    text = json.dumps(plain_settings(found)) + repr(found)
    assert "me" in text
    assert "hunter2" not in text
    assert "from-a-file" not in text
    assert "plain-but-hidden" not in json.dumps(plain_settings(found))


def test_mapping_and_shard():
    assert mapping("a=b|c,d=e", "--columns") == {"a": "b|c", "d": "e"}
    with pytest.raises(BadSettings, match="--columns: got 'anchor', expected NAME=VALUE"):
        mapping("anchor", "--columns")
    assert shard(None) is None and shard("0/1") == (0, 1)
    for wrong in ("2/2", "x/2", "1", "-1/2"):
        with pytest.raises(BadSettings, match="expected i/n"):
            shard(wrong)


@pytest.mark.parametrize("policy, kept", [("first", True), ("off", False)])
def test_the_former_table_of_the_guard_is_still_read(tmp_path, policy, kept):
    file = tmp_path / "engine.toml"
    file.write_text(f'[guard]\npolicy = "{policy}"\n')
    with pytest.warns(FutureWarning, match=f"guard = {str(kept).lower()}"):
        assert load(str(file), {}, {}).guard is kept
