"""Configuration files: `check-config` prints the settings in force, or says in one line what is wrong."""

import json
import tempfile
from pathlib import Path
from random import Random

from tests.fuzz.mutations import damaged, kept_case
from tests.support.process import engine

TRUSTED = True
VALUES = [
    "1",
    "0",
    "-1",
    "1e999",
    "9" * 30,
    "nan",
    "1.5",
    "true",
    '""',
    '"x"',
    '"0/2"',
    '"3/2"',
    '"nonsense"',
    '"127.0.0.1:9108"',
    '"[::1]:0"',
    '":99999999"',
    '"a.jsonl"',
    '"kafka://h:1/t"',
    '"kafka://"',
    '"\\u0000"',
    '"~/x"',
    "[]",
    '["a"]',
    "[1, [2]]",
    "{}",
    '{ env = "HOME" }',
    '{ env = "NOT_THERE" }',
    "1979-05-27",
    "07:32:00",
    "inf",
    "'''\nx\n'''",
]
TOKENS = [b"[", b"]", b"=", b'"', b"\n", b"#", b".", b"{", b"}", b",", b"\0", b"\xff", b"'", b"x", b"1", b"true"]


def make(rng: Random) -> bytes:
    case = kept_case(rng, "config")
    if case is not None:
        return damaged(rng, case, TOKENS)
    keys = _keys()
    sections: dict[str, list[str]] = {}
    for section, key in rng.sample(keys, min(len(keys), rng.randint(1, 5))):
        sections.setdefault(section, []).append(f"{key} = {rng.choice(VALUES)}")
    if rng.random() < 0.2:
        sections.setdefault(rng.choice(["nowhere", "kafka", *sections]), []).append(f"colour = {rng.choice(VALUES)}")
    text = "\n".join("\n".join([f"[{name}]" if name else "", *lines]) for name, lines in sorted(sections.items()))
    data = text.encode()
    return damaged(rng, data, TOKENS) if rng.random() < 0.3 else data


def _keys() -> list[tuple[str, str]]:
    """Every key of the settings, with its section ("" at the top)."""
    from stream_engine.service.settings.loading import load, plain_settings

    found = []
    for section, value in plain_settings(load(None, {"source": ["x.jsonl"], "state": "s"})).items():
        if isinstance(value, dict):
            found += [(section, key) for key in value] or [(section, "x")]
        else:
            found.append(("", section))
    return sorted(found)


def check(data: bytes) -> str:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / "engine.toml"
        path.write_bytes(data)
        done = engine("check-config", path, status=None)
    assert done.returncode in (0, 2), done
    if done.returncode == 0:
        json.loads(done.stdout)
        return "accepted"
    assert done.stderr.startswith("stream-engine: ") and done.stderr.count("\n") == 1, done.stderr
    return "refused"
