"""The real Prometheus scrapes a running engine, promtool has no complaint, and every alert fires when it should."""

import json
import subprocess
import urllib.request

import pytest
import yaml

from tests.conftest import ROOT
from tests.support.process import free_ports, jsonl, until
from tests.support.running_engine import Engine

pytestmark = pytest.mark.prometheus
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=120) as answer:
        return answer.read().decode()


@pytest.fixture(scope="module")
def scraped(tmp_path_factory, prometheus):
    """(engine's address, Prometheus' address) of a running pair."""
    folder = tmp_path_factory.mktemp("scrape")
    events = jsonl(folder / "events.jsonl", [{"anchor": "a", "near": "b", "far": "c"}] * 20 + ["{bad"])
    running, server = Engine(folder, str(events), "--follow", "--snapshot-interval", "0.2"), None
    try:
        config = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
        config["global"]["scrape_interval"] = "1s"
        config["scrape_configs"][0]["static_configs"][0]["targets"] = [running.address]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        (folder / "alerts.yml").write_text(ALERTS.read_text())
        web = f"127.0.0.1:{free_ports(1)[0]}"
        server = subprocess.Popen(
            [
                prometheus,
                f"--config.file={folder}/prometheus.yml",
                f"--web.listen-address={web}",
                f"--storage.tsdb.path={folder}/data",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        yield running.address, web
    finally:
        if server:
            server.terminate()
            server.wait(600)
        running.stop()


def test_the_target_is_up_and_its_figures_arrive(scraped):
    _, web = scraped

    def value(query: str) -> float | None:
        try:
            found = json.loads(fetched(f"http://{web}/api/v1/query?query={query}"))["data"]["result"]
        except OSError:
            return None
        return float(found[0]["value"][1]) if found else None

    until(lambda: value("up") == 1, what="the target to be up")
    until(lambda: value("sum(stream_engine_comparisons_total)") == 20, what="the comparisons")
    assert value("sum(stream_engine_rejected_total)") == 1
    until(lambda: value("stream_engine_snapshot_sequence") == 1, what="the snapshot")
    rules = json.loads(fetched(f"http://{web}/api/v1/rules"))["data"]["groups"][0]["rules"]
    assert len(rules) == len(yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"])
    assert all(rule["health"] in ("ok", "unknown") for rule in rules)


def test_promtool_has_no_complaint(scraped, promtool, tmp_path):
    address, _ = scraped
    assert promtool("check", "metrics", text=fetched(f"http://{address}/metrics")).strip() == ""
    promtool("check", "rules", ALERTS)
    (tmp_path / "alerts.yml").write_text(ALERTS.read_text())
    (tmp_path / "prometheus.yml").write_text((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    promtool("check", "config", tmp_path / "prometheus.yml")


# alert -> series that provoke it, minute by minute, and when it must be firing
PROVOKED = {
    "StreamEngineLogLinesLost": ({'stream_engine_log_lines_lost_total{instance="e"}': "0 0 0 1 1 1 1 1 1"}, "5m"),
    "StreamEngineCommitsRefused": ({'stream_engine_commits_refused_total{instance="e"}': "0 0 0 1 1 1 1 1 1"}, "5m"),
    "StreamEngineDown": ({'up{job="stream-engine", instance="e"}': "0x30"}, "5m"),
    "StreamEngineNotReady": ({'stream_engine_ready{instance="e"}': "0x30"}, "10m"),
    "StreamEngineStalled": ({'stream_engine_stalled{instance="e"}': "1x30"}, "5m"),
    "StreamEngineLagGrows": ({'stream_engine_lag_records{instance="e", partition="t/0"}': "2000000+1000x60"}, "40m"),
    "StreamEngineSnapshotsFail": (
        {'stream_engine_snapshot_failures_total{instance="e"}': "0 0 0 1 1 1 1 1 1 1 1"},
        "6m",
    ),
    "StreamEngineSnapshotOld": (
        {
            'process_start_time_seconds{instance="e"}': "0x200",
            'stream_engine_snapshot_published_timestamp_seconds{instance="e"}': "0x200",
            'stream_engine_last_event_timestamp_seconds{instance="e"}': "0+60x200",
        },
        "90m",
    ),
    "StreamEngineRejectsMost": ({'stream_engine_rejected_share{instance="e"}': "0 0 0.9 0.9"}, "3m"),
    "StreamEngineRejectsMany": (
        {
            'stream_engine_rejected_total{instance="e", reason="not_parseable"}': "0+50x60",
            'stream_engine_events_total{instance="e", kind="triplet"}': "0+100x60",
        },
        "30m",
    ),
    "StreamEngineQuarantine": (
        {'stream_engine_rejected_total{instance="e", reason="decoder_failed"}': "0 0 1 1 1 1 1 1"},
        "5m",
    ),
    "StreamEngineDeadLettersLost": ({'stream_engine_dead_letters_lost_total{instance="e"}': "0 0 6 6 6 6 6 6"}, "5m"),
    "StreamEngineDeadLettersRemoved": (
        {'stream_engine_dead_letters_removed_total{instance="e"}': "0 0 9 9 9 9 9 9"},
        "5m",
    ),
    "StreamEngineDiskTooSmall": (
        {
            'stream_engine_disk_room_bytes{instance="e"}': "39x30",
            'stream_engine_disk_needed_bytes{instance="e"}': "40x30",
        },
        "10m",
    ),
    "StreamEngineRefitsFail": (
        {'stream_engine_refit_failures_total{instance="e", refit="sdp_clustering"}': "0 1 2 3 4 5 6 7 8 9 9 9"},
        "10m",
    ),
    "StreamEngineResultsNotSent": ({'stream_engine_results_failures_total{instance="e"}': "0+4x60"}, "20m"),
    "StreamEngineNearMemoryBudget": (
        {
            'stream_engine_memory_bytes{instance="e", of="limit"}': "100x30",
            'stream_engine_memory_bytes{instance="e", of="resident"}': "60x30",
            'stream_engine_memory_bytes{instance="e", of="refits"}': "30x30",
        },
        "15m",
    ),
    "StreamEngineMessagesTooLarge": (
        {'stream_engine_rejected_total{instance="e", reason="too_large"}': "0 0 1 1 1 1 1 1"},
        "5m",
    ),
    "StreamEngineRecordsLost": (
        {'stream_engine_records_lost_total{instance="e", partition="t/0"}': "0 0 7 7 7 7 7 7"},
        "5m",
    ),
    "StreamEngineStateChangedByHand": (
        {'stream_engine_history_total{instance="e", did="seek"}': "0 0 1 1 1 1 1 1"},
        "5m",
    ),
    "StreamEngineWedged": ({'stream_engine_loop_ticked_timestamp_seconds{instance="e"}': "0x30"}, "10m"),
    "StreamEnginePaused": ({'stream_engine_paused{instance="e"}': "1x90"}, "70m"),
    "StreamEngineHttpRefuses": (
        {'stream_engine_http_refused_total{instance="e", reason="token"}': "0+120x60"},
        "40m",
    ),
    "StreamEngineDrift": ({'stream_engine_drifts_total{instance="e", signal="loss"}': "0 0 1 1 1 1 1 1"}, "5m"),
}


def firing(promtool, tmp_path, alert: str, series: dict[str, str], at: str, expected: bool) -> None:
    """promtool's own unit test of one rule: is it firing then?"""
    rule = next(r for r in yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"] if r["alert"] == alert)
    expression = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'
    test = {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [
                    {
                        "expr": expression,
                        "eval_time": at,
                        "exp_samples": [{"labels": "{}", "value": 1}] if expected else [],
                    }
                ],
            }
        ],
    }
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump(test))
    assert rule and promtool("test", "rules", path)


@pytest.mark.parametrize("alert", PROVOKED)
def test_each_alert_fires_when_provoked_and_not_otherwise(alert, promtool, tmp_path):
    series, at = PROVOKED[alert]
    firing(promtool, tmp_path, alert, series, at, True)
    healthy = {
        'up{job="stream-engine", instance="e"}': "1x200",
        'stream_engine_ready{instance="e"}': "1x200",
        'stream_engine_stalled{instance="e"}': "0x200",
        'stream_engine_lag_records{instance="e", partition="t/0"}': "10x200",
        'stream_engine_snapshot_published_timestamp_seconds{instance="e"}': "0+60x200",
        'stream_engine_last_event_timestamp_seconds{instance="e"}': "0+60x200",
        'stream_engine_rejected_total{instance="e", reason="not_parseable"}': "0+1x200",
        'stream_engine_events_total{instance="e", kind="triplet"}': "0+1000x200",
        'stream_engine_dead_letters_lost_total{instance="e"}': "0x200",
        'stream_engine_dead_letters_removed_total{instance="e"}': "0x200",
        'stream_engine_disk_room_bytes{instance="e"}': "40x200",
        'stream_engine_disk_needed_bytes{instance="e"}': "40x200",
        'stream_engine_memory_bytes{instance="e", of="limit"}': "100x200",
        'stream_engine_memory_bytes{instance="e", of="resident"}': "60x200",
        'stream_engine_memory_bytes{instance="e", of="refits"}': "20x200",
        'stream_engine_rejected_total{instance="e", reason="too_large"}': "0x200",
        'stream_engine_records_lost_total{instance="e", partition="t/0"}': "7x200",
        'stream_engine_history_total{instance="e", did="seek"}': "1x200",
        'stream_engine_history_total{instance="e", did="offsets lost"}': "0 0 1x200",
        'stream_engine_loop_ticked_timestamp_seconds{instance="e"}': "0+60x200",
        'stream_engine_paused{instance="e"}': "0x200",
        'stream_engine_results_failures_total{instance="e"}': "2x200",
        'stream_engine_http_refused_total{instance="e", reason="token"}': "0+20x200",
        'stream_engine_http_refused_total{instance="e", reason="idle"}': "0+600x200",
    }
    firing(promtool, tmp_path, alert, healthy, at, False)


def test_every_alert_is_provoked():
    assert {r["alert"] for r in yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]} == set(PROVOKED)
