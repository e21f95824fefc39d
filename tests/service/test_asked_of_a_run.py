"""What is asked of a real run while it is under way: by POST."""

import json
import os
import signal
import threading

import httpx

from tests.support.process import Done, engine, free_ports, jsonl, until

TOKEN = "admin-horse-battery!"
EVENT = '{"anchor": "a", "near": "b", "far": "c"}\n'


class Run:
    """`stream-engine run --follow` in this thread, and a person beside it in another."""

    def __init__(self, folder, monkeypatch):
        self.events, self.config = jsonl(folder / "events.jsonl", [EVENT.strip()] * 10), folder / "engine.toml"
        (port,) = free_ports(1)
        monkeypatch.setenv("ADMIN_TOKEN", TOKEN)
        self.start = (
            f'source = ["{self.events}"]\nstate = "{folder / "state"}"\nfollow = true\nlisten = "127.0.0.1:{port}"\n'
            f'[http]\nadmin_token = {{ env = "ADMIN_TOKEN" }}\n'
            "[snapshot]\ninterval = 0\n"
        )
        self.config.write_text(self.start)
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}")
        self.admin = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {TOKEN}"})

    def metric(self, name: str) -> float:
        lines = [
            line for line in self.http.get("/metrics").text.splitlines() if line.startswith(f"stream_engine_{name}")
        ]
        return sum(float(line.split()[-1]) for line in lines)

    def answers(self) -> bool:
        try:
            return self.http.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def append(self, text: str = EVENT) -> None:
        with self.events.open("a") as file:
            file.write(text)

    def beside(self, ask) -> Done:
        """Run until `ask` has ended."""
        failed = []

        def person():
            try:
                until(self.answers, what="the server")
                ask()
            except BaseException as error:
                failed.append(error)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        thread = threading.Thread(target=person)
        thread.start()
        done = engine("run", "--config", self.config, "--no-refits", "--log-format", "json", status=None)
        thread.join()
        self.http.close()
        self.admin.close()
        assert not failed, (failed, done.stderr)
        assert done.returncode == 0, done.stderr
        return done


def test_paused_resumed_snapshot_and_refit(tmp_path, monkeypatch):
    run = Run(tmp_path, monkeypatch)

    def ask():
        until(lambda: run.metric('comparisons_total{kind="triplet"}') == 10, what="ten comparisons")
        run.admin.post("/admin/pause")
        until(lambda: run.metric("paused") == 1, what="the pause")
        assert "/admin/pause" in run.http.get("/readyz").text and run.answers()
        run.append()
        assert run.admin.post("/admin/snapshot").status_code == 202
        until(lambda: run.http.get("/snapshot").status_code == 200, what="a snapshot while paused")
        assert run.http.get("/snapshot").json()["comparisons"] == 10
        assert run.admin.post("/admin/refit?kind=spectral").json()["snapshot"] == 1
        until(lambda: run.metric('refit_seconds_count{refit="spectral"}') == 1, what="the refit, though refits are off")
        run.admin.post("/admin/resume")
        until(lambda: run.metric('comparisons_total{kind="triplet"}') == 11, what="what came meanwhile")
        until(lambda: run.metric("guard_verdicts_total") == 11, what="its verdict, before a snapshot")
        assert run.http.get("/readyz").status_code == 200 and run.metric("paused") == 0
        assert run.admin.post("/admin/log-level?level=debug").json() == {"level": "debug"}
        run.admin.post("/admin/snapshot")
        until(lambda: run.http.get("/snapshot").json()["comparisons"] == 11, what="another snapshot")

    said = run.beside(ask).stderr
    assert said.count('"event": "snapshot", "level": "debug"') == 1 and '"why": "admin"' in said and TOKEN not in said
    lines = [json.loads(line) for line in said.splitlines()]
    assert not any("where" in line for line in lines)  # nothing stalled
    assert any(line.get("refit") == "spectral" and line.get("snapshot") == 1 for line in lines)
