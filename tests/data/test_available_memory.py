"""What memory there is: the least of what the machine, its control groups and a budget allow."""

import pytest

from stream_engine.data import available_memory

GB = 10**9


def test_available_memory_is_the_least_of_what_limits_it(tmp_path):
    meminfo, group = tmp_path / "meminfo", tmp_path / "cgroup"
    meminfo.write_text("MemTotal: 900 kB\nMemAvailable:   500 kB\n")
    group.mkdir()
    assert available_memory.available(meminfo, group) == 500 * 1024
    assert available_memory.available(tmp_path / "none", group) is None
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("100000\n")
    assert available_memory.available(meminfo, group) == 500 * 1024
    (group / "memory.max").write_text("300000\n")
    assert available_memory.available(meminfo, group) == 200_000
    (group / "memory.stat").write_text("inactive_file 7000\nactive_file 500\nanon 9\n")
    assert available_memory.available(meminfo, group) == 207_500
    (group / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 60\ntotal_active_file 5\nactive_file 1\n")
    assert available_memory.available(meminfo, group) == 200_065
    (group / "memory.current").write_text("400000\n")
    assert available_memory.available(meminfo, group) == 0
    (group / "memory.max").unlink()
    old = group / "memory"
    old.mkdir()
    (old / "memory.limit_in_bytes").write_text("5000")
    (old / "memory.usage_in_bytes").write_text("2000")
    assert available_memory.available(meminfo, group) == 3000
    available_memory.give(available_memory.resident() + 10**9)
    try:
        assert 0.9e9 < available_memory.available(tmp_path / "none", tmp_path / "none") <= 1e9
        available_memory.give(1)
        assert available_memory.available(meminfo, group) == 0
    finally:
        available_memory.give(None)
    assert available_memory.resident() > 10**7 and available_memory.resident(2**30) == 0


def test_what_does_not_fit_is_said(monkeypatch):
    monkeypatch.setattr(available_memory, "available", lambda: 100)
    available_memory.require("x", 100, "less")
    monkeypatch.setattr(available_memory, "available", lambda: 10**9)
    with pytest.raises(available_memory.TooLarge, match="^x.*2.0 GB.*1.0 GB.*less$"):
        available_memory.require("x", 2e9, "less")
    monkeypatch.setattr(available_memory, "available", lambda: 1)
    with pytest.raises(available_memory.TooLarge, match="1e-09 GB"):
        available_memory.require("x", 2, "less")
    assert available_memory.matrices(2.5, 10) == 2000 and available_memory.limit_in_bytes(0.5) == 500_000_000
    assert available_memory.limit_in_bytes(None) is None
