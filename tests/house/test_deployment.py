"""What runs elsewhere is checked as far as it can be here: the image's instructions, the unit's sandbox, the shards."""

import json
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement

from tests.conftest import ROOT
from tests.support import system_call_filter
from tests.support.process import ENVIRONMENT

DEPLOY = ROOT / "deploy"
IMAGE = (DEPLOY / "Dockerfile").read_text()
UNIT = DEPLOY / "stream-engine.service"
KUBERNETES = DEPLOY / "kubernetes"


def pins(name: str) -> dict[str, tuple[str, frozenset[str]]]:
    """What a lock file pins: version and hashes by name."""
    text = (ROOT / name).read_text().replace("\\\n", "")
    return {
        words[0].partition("==")[0]: (words[0].partition("==")[2], frozenset(words[1:]) - {";", "and", "or"})
        for line in text.splitlines()
        if (words := [word for word in line.split() if "==" in word[:80] or word.startswith("--hash")])
    }


def test_the_image_gets_what_a_run_needs_in_the_versions_that_were_tested():
    runtime, tested = pins("requirements-runtime.lock"), pins("requirements.lock")
    for name, (version, hashes) in runtime.items():
        assert tested[name][0] == version and {h for h in hashes if h.startswith("--hash")} <= tested[name][1], name
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {Requirement(text).name for text in project["dependencies"]}
    assert needed <= runtime.keys()
    extras = {Requirement(text).name for texts in project["optional-dependencies"].values() for text in texts}
    assert not extras & runtime.keys() and len(runtime) < len(tested) - 20
    assert "requirements.lock" not in IMAGE and "--require-hashes -r requirements-runtime.lock" in IMAGE


def test_the_image_is_pinned_without_root_and_says_whether_it_is_well():
    (base,) = re.findall(r"^ARG BASE=(.*)$", IMAGE, re.M)
    assert re.fullmatch(r"python:[\w.-]+@sha256:[0-9a-f]{64}", base)
    assert re.findall(r"^FROM (\S+)", IMAGE, re.M) == ["${BASE}", "${BASE}"]
    final = IMAGE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001", final, re.M) and "pip" not in final.replace("pipe", "")
    (check,) = re.findall(r"^HEALTHCHECK .*?CMD (\[.*?\])$", final, re.M | re.S)
    program, option, code = json.loads(check)
    assert (program, option) == ("python", "-c") and "/healthz" in code
    compile(code, "HEALTHCHECK", "exec")
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        w
        for line in IMAGE.splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for w in line.split()[1:-1]
    }
    assert copied == allowed and all((ROOT / name).exists() for name in copied)


def test_the_check_of_the_image_fails_when_the_engine_does():
    code = json.loads(re.search(r"CMD (\[\"python\".*?\])$", IMAGE, re.M)[1])[2]
    done = subprocess.run([sys.executable, "-c", code.replace("9108", "1")], capture_output=True)
    assert done.returncode == 1


@pytest.mark.needs("systemd-analyze", "systemd")
def test_the_unit_is_hardly_exposed():
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", UNIT],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-200:]
    exposure = float(re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)[1])
    assert exposure <= 2.0
    wrong = [line for line in done.stderr.splitlines() if "not executable" not in line and line.strip()]
    assert wrong == []


@pytest.mark.needs("systemd-analyze", "systemd")  # libseccomp comes with it
def test_the_engine_runs_under_the_units_system_call_filter(tmp_path):
    (tmp_path / "e.jsonl").write_text('{"anchor": "a", "near": "b", "far": "c"}\n')
    run = [
        "run",
        str(tmp_path / "e.jsonl"),
        "--state",
        str(tmp_path / "state"),
        "--listen",
        "127.0.0.1:0",
        "--no-refits",
    ]
    under = [sys.executable, system_call_filter.__file__, str(UNIT)]
    done = subprocess.run([*under, sys.executable, "-m", "stream_engine", *run], env=ENVIRONMENT, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "state" / "snapshots" / "000000000001.snapshot").exists()
    forbidden = subprocess.run([*under, "nice", "-n", "1", "true"], capture_output=True, text=True)
    assert "not permitted" in forbidden.stderr  # the filter is there


def test_the_unit_is_notified_and_watched():
    settings = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.M))
    assert settings["Type"] == "notify" and settings["WatchdogSec"] == "3min"
    assert settings["ExecReload"].endswith("-HUP $MAINPID") and settings["Restart"] == "on-failure"


@pytest.mark.needs("systemd-analyze", "systemd")
def test_the_unit_is_one_that_systemd_reads(tmp_path):
    there = UNIT.read_text().replace("/opt/stream-engine/bin/stream-engine", sys.executable)
    (tmp_path / UNIT.name).write_text(there)
    done = subprocess.run(["systemd-analyze", "verify", tmp_path / UNIT.name], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_has_bounds_and_does_not_forbid_what_numba_does():
    settings = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.M))
    assert int(settings["LimitNOFILE"]) >= 1024
    assert settings["MemoryMax"]
    assert settings["MemoryHigh"]
    assert "MemoryDenyWriteExecute" not in settings and settings["RestartPreventExitStatus"] == "2"


@pytest.mark.needs("kubectl", "kubernetes-client")
def test_kustomize_gives_every_pod_the_number_of_pods(tmp_path):
    for name in ("kustomization.yaml", "stream-engine.yaml"):
        (tmp_path / name).write_text((KUBERNETES / name).read_text().replace("REPLICAS=1", "REPLICAS=3"))
    done = subprocess.run(["kubectl", "kustomize", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    (pods,) = (each for each in made if each["kind"] == "StatefulSet")
    (container,) = pods["spec"]["template"]["spec"]["containers"]
    (reference,) = (each["valueFrom"]["configMapKeyRef"] for each in container["env"] if each["name"] == "REPLICAS")
    (shards,) = (each for each in made if each["metadata"]["name"] == reference["name"])
    assert int(shards["data"]["REPLICAS"]) == pods["spec"]["replicas"] == 3
