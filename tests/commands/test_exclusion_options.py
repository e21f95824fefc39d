"""Who can be excluded when a state is made."""

from click.testing import CliRunner

from stream_engine.commands.run import command
from stream_engine.state.store import Store


def run(tmp_path, names: str, *more: str):
    rows = [f"o{t % 5},o{(t + 1) % 5},o{(t + 2) % 5},{names[t % len(names)]}" for t in range(40)]
    file = tmp_path / f"{names}.csv"
    file.write_text("\n".join(["anchor,near,far,worker", *rows]) + "\n", encoding="utf-8")
    return CliRunner().invoke(command, [str(file), "--state", str(tmp_path / "state"), "--no-refits", *more])


def test_a_state_that_starts_over_does_not_say_who_is_known(tmp_path):
    """A participant of the data to come is excluded; without starting over, who is not in the data is refused."""
    assert run(tmp_path, "abc").exit_code == 0
    assert run(tmp_path, "abc", "--exclude", "participant=x").exit_code == 2
    found = run(tmp_path, "xyz", "--start-over", "--exclude", "participant=x")
    assert found.exit_code == 0, found.output
    assert Store(tmp_path / "state").excluded() == ("x",)
