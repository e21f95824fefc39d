"""What deploy/ holds is checked by what runs here: promtool, schemas, the engine's own metrics and commands."""

import json
import re
import shlex

import pytest
import yaml

from stream_engine.service.metrics import Metrics
from tests.conftest import ROOT
from tests.support.process import engine

DEPLOY = ROOT / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((DEPLOY / "grafana" / "dashboards" / "stream-engine.json").read_text())
MANIFESTS = [m for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for m in yaml.safe_load_all(path.read_text())]


def known_metrics() -> set[str]:
    """Every sample name that a scrape can have."""
    names = set()
    for family in Metrics().registry.collect():
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "info": ("_info",)}
        names |= {family.name + suffix for suffix in suffixes.get(family.type, ("",))}
    return names | {"up"}


def metrics_in(expression: str) -> set[str]:
    unquoted = re.sub(r'"[^"]*"', '""', expression)  # values of labels are no metrics
    return set(re.findall(r"\b(?:stream_engine|process)_[a-z_]+\b|\bup\b", unquoted))


@pytest.mark.parametrize(
    "where, expression",
    [(rule["alert"], rule["expr"]) for rule in RULES]
    + [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"]],
)
def test_dashboards_and_alerts_use_only_metrics_that_exist(where, expression):
    used = metrics_in(expression)
    assert used and used <= known_metrics(), used - known_metrics()


def test_the_operators_rules_are_the_same():
    (rule,) = (m for m in MANIFESTS if m["kind"] == "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())


def test_manifests_hang_together():
    kinds = {m["kind"]: m for m in MANIFESTS}
    assert set(kinds) == {
        "Kustomization",
        "ConfigMap",
        "Service",
        "StatefulSet",
        "PodDisruptionBudget",
        "NetworkPolicy",
        "ServiceMonitor",
        "PrometheusRule",
    }
    pod = kinds["StatefulSet"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    for owner in ("Service", "PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor"):
        text = json.dumps(kinds[owner]["spec"])
        assert '"app": "stream-engine"' in text, owner
    volumes = {v["name"] for v in pod["spec"]["volumes"]} | {
        c["metadata"]["name"] for c in kinds["StatefulSet"]["spec"]["volumeClaimTemplates"]
    }
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    assert container["securityContext"]["readOnlyRootFilesystem"] and pod["spec"]["securityContext"]["runAsNonRoot"]
    port = container["ports"][0]["containerPort"]
    assert kinds["Service"]["spec"]["ports"][0]["port"] == port == 9108


@pytest.mark.parametrize("source", ["compose", "kubernetes"])
def test_configurations_are_accepted_by_the_engine(source, tmp_path):
    if source == "compose":
        text = (DEPLOY / "compose" / "engine.toml").read_text()
    else:
        text = next(m for m in MANIFESTS if m["kind"] == "ConfigMap")["data"]["engine.toml"]
        for name in re.findall(r"/run/secrets/([\w/]+)", text):
            secret = tmp_path / name
            secret.parent.mkdir(exist_ok=True)
            secret.write_text("hunter2" * 5)
        text = text.replace("/run/secrets/", f"{tmp_path}/")
    (tmp_path / "engine.toml").write_text(text)
    shown = engine("check-config", tmp_path / "engine.toml").stdout
    assert json.loads(shown)["listen"] == "0.0.0.0:9108" and "hunter2" not in shown


def test_compose_names_files_and_verbs_that_exist(tmp_path):
    compose = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
    for name, service in compose["services"].items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (DEPLOY / "compose" / source).resolve().exists(), (name, source)
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), "published on loopback only"
        if "build" in service:
            assert (
                (DEPLOY / "compose" / service["build"]["context"] / service["build"]["dockerfile"]).resolve().exists()
            )
    verb = compose["services"]["producer"]["command"][0]
    assert "Usage" in engine(verb, "--help").stdout
    engine("run", DEPLOY / "compose" / "samples" / "events.jsonl", "--state", tmp_path / "s", "--no-refits")


def test_the_units_commands_run(tmp_path):
    unit = (DEPLOY / "stream-engine.service").read_text()
    config = tmp_path / "engine.toml"
    (tmp_path / "events.jsonl").write_text('{"anchor": "a", "near": "b", "far": "c"}\n')
    config.write_text(f'source = ["{tmp_path}/events.jsonl"]\nstate = "{tmp_path}/state"\n[refits]\nkinds = []\n')
    commands = re.findall(r"^Exec(?:StartPre|Start)=(.*)$", unit, re.M)
    assert len(commands) == 2
    for command in commands:
        program, *arguments = shlex.split(command.replace("/etc/stream-engine/engine.toml", str(config)))
        assert program.endswith("/stream-engine")
        engine(*arguments)
    assert (tmp_path / "state" / "snapshots" / "000000000001.snapshot").exists()
