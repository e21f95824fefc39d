"""The Helm chart, rendered by Helm's own library and held against Kubernetes' schemas and the engine's settings."""

import json
import re

import pytest
import yaml
from kubernetes_validate import validate

from tests.conftest import ROOT
from tests.support.process import engine

helm_python = pytest.importorskip("helm_python", reason="Helm's library has wheels for Linux only")

CHART = ROOT / "deploy" / "helm" / "stream-engine"
WHOLE = {
    "shards": 3,
    "secrets": {"http": {"name": "h", "key": "t"}, "kafka": {"name": "k", "key": "p"}},
    "state": {"size": "5Gi", "storageClass": "fast", "accessMode": "ReadWriteOnce"},
    "serviceMonitor": {"enabled": True, "interval": "30s"},
    "prometheusRule": {"enabled": True},
}


def rendered(values: dict | None = None) -> dict[str, dict]:
    """The objects of a release called `study`, by kind."""
    with helm_python.Chart.load(CHART) as chart:
        texts = chart.render(values, name="study")
    made = [each for name, text in texts.items() if name.endswith(".yaml") for each in yaml.safe_load_all(text)]
    return {each["kind"]: each for each in made}


@pytest.mark.parametrize("values", [{}, WHOLE, {"networkPolicy": {"enabled": False}}], ids=["default", "all", "open"])
def test_what_is_rendered_is_valid(values):
    kinds = rendered(values)
    assert ("PrometheusRule" in kinds) == ("ServiceMonitor" in kinds) == (values is WHOLE)
    assert ("NetworkPolicy" in kinds) == ("networkPolicy" not in values)
    for kind, manifest in kinds.items():
        if kind not in ("PrometheusRule", "ServiceMonitor"):  # the operator's: no schema there
            validate(manifest, "1.31", strict=True)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "deploy" / "kubernetes").glob("[!k]*.yaml")), ids=lambda path: path.name
)
def test_the_manifests_without_helm_are_valid(path):
    for manifest in yaml.safe_load_all(path.read_text()):
        if manifest["kind"] not in ("PrometheusRule", "ServiceMonitor"):  # the operator's: no schema there
            validate(manifest, "1.31", strict=True)


def test_selectors_volumes_and_shards_belong_together():
    kinds = rendered(WHOLE)
    pod = kinds["StatefulSet"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    for owner in ("Service", "PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "StatefulSet"):
        assert '"app": "study"' in json.dumps(kinds[owner]["spec"]), owner
    claims = [each["metadata"]["name"] for each in kinds["StatefulSet"]["spec"]["volumeClaimTemplates"]]
    volumes = {each["name"] for each in pod["spec"]["volumes"]} | set(claims)
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    assert kinds["StatefulSet"]["spec"]["replicas"] == 3 and container["args"][-1] == "$(ORDINAL)/3"


def test_the_alerts_are_those_of_prometheus_for_this_release():
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())
    here = rendered(WHOLE)["PrometheusRule"]["spec"]
    assert json.dumps(here).replace('job=\\"study\\"', 'job=\\"stream-engine\\"') == json.dumps(rules)


def test_the_engine_accepts_the_settings_and_the_arguments(tmp_path):
    kinds = rendered()
    text = kinds["ConfigMap"]["data"]["engine.toml"]
    for name in re.findall(r"/run/secrets/([\w/]+)", text):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("hunter2" * 5)
    (tmp_path / "engine.toml").write_text(text.replace("/run/secrets/", f"{tmp_path}/"))
    shown = engine("check-config", tmp_path / "engine.toml").stdout
    assert json.loads(shown)["input"]["start"] == "earliest" and "hunter2" not in shown
    options = engine("run", "--help").stdout
    (container,) = kinds["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert all(each in options for each in container["args"] if each.startswith("--"))


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"shards": 0}, "/shards"),
        ({"settings": ""}, "/settings"),
        ({"secrets": {"http": {"name": "", "key": "t"}}}, "/secrets/http"),
        ({"replicas": 2}, "replicas"),
    ],
)
def test_values_that_cannot_work_are_refused(values, where):
    with pytest.raises(helm_python.HelmError, match=where):
        rendered(values)
