"""The measured load in small: a real engine, readers at once, idle sockets, SIGTERM in the middle."""

import re

from tests.hardening import http_load


def test_readers_idle_sockets_and_sigterm(capsys):
    sizes = {"objects": 60, "readers": 3, "idle": 60, "requests": 3}
    http_load.main([f"--{name}={size}" for name, size in sizes.items()])
    told = dict(re.findall(r"\| (.*?) \| (.*) \|", capsys.readouterr().out))
    assert told["all downloads equal"] == "True" and told["downloads"].startswith("3 of /export/k1.csv: 200 ")
    assert told["traceback in the log"] == "False" and int(told["log"].split()[0].replace(",", "")) < 9000
    assert told["idle sockets still open"] == "60 of 60"
