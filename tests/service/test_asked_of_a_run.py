"""What is asked of a real run while it is under way: by POST."""

import httpx

from tests.support.process import jsonl, until
from tests.support.running_engine import Engine

TOKEN = "admin-horse-battery!"
EVENT = '{"anchor": "a", "near": "b", "far": "c"}'
CONFIG = '[http]\nadmin_token = { env = "ADMIN_TOKEN" }\n[snapshot]\ninterval = 0\n'


def test_paused_resumed_snapshot_and_refit(tmp_path):
    events = jsonl(tmp_path / "events.jsonl", [EVENT] * 10)
    run = Engine(tmp_path, str(events), "--follow", config=CONFIG, ADMIN_TOKEN=TOKEN)
    with httpx.Client(base_url=f"http://{run.address}", headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        until(lambda: run.figure('comparisons_total{kind="triplet"}') == 10, what="ten comparisons")
        http.post("/admin/pause")
        until(lambda: run.figure("paused") == 1, what="the pause")
        assert "/admin/pause" in http.get("/readyz").text and http.get("/healthz").status_code == 200
        jsonl(events, [EVENT] * 11)
        assert http.post("/admin/snapshot").status_code == 202
        until(lambda: http.get("/snapshot").status_code == 200, what="a snapshot while paused")
        assert http.get("/snapshot").json()["comparisons"] == 10
        assert http.post("/admin/refit?kind=spectral").json()["snapshot"] == 1
        until(lambda: run.figure('refit_seconds_count{refit="spectral"}') == 1, what="the refit, though refits are off")
        http.post("/admin/resume")
        until(lambda: run.figure('comparisons_total{kind="triplet"}') == 11, what="what came meanwhile")
        until(lambda: run.figure("guard_verdicts_total") == 11, what="its verdict, before a snapshot")
        assert http.get("/readyz").status_code == 200 and run.figure("paused") == 0
        assert http.post("/admin/log-level?level=debug").json() == {"level": "debug"}
        http.post("/admin/snapshot")
        until(lambda: http.get("/snapshot").json()["comparisons"] == 11, what="another snapshot")
    run.stop()
    lines = run.lines()
    snapshots = [line["why"] for line in lines if line["event"] == "snapshot" and line["level"] == "debug"]
    assert snapshots == ["admin"] and TOKEN not in run.said.read_text()
    assert not any("where" in line for line in lines)  # nothing stalled
    assert any(line.get("refit") == "spectral" and line.get("snapshot") == 1 for line in lines)
