"""The measured attack in small: a real engine, readers at once, silent connections, SIGTERM in the middle."""

import re

from tests.hardening import http_load


def test_readers_silent_connections_and_sigterm(capsys):
    sizes = {"objects": 60, "readers": 3, "idle": 60, "silent": 40, "requests": 3, "seconds": 0}
    http_load.main([f"--{name}={size}" for name, size in sizes.items()])
    told = dict(re.findall(r"\| (.*?) \| (.*) \|", capsys.readouterr().out))
    assert told["all downloads equal"] == "True" and told["downloads"].startswith("3 of /export/k1.csv: 200 ")
    assert told["traceback in the log"] == "False" and int(told["log during it"].split()[0].replace(",", "")) < 2000
    assert all(told[each].endswith("(status 0)") for each in told if each.startswith("SIGTERM"))
