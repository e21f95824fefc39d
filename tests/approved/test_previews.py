"""What `preview` says of files as tools write them."""

from tests.support.approved import unchanging
from tests.support.process import engine
from tests.support.survey_files import FILES

NAMES = [name for number, name in enumerate(FILES) if number % 20 == 1 or FILES[name].refused]


def test_preview(tmp_path, approved):
    lines = []
    for number, name in enumerate(NAMES):
        file = FILES[name]
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / file.name).write_bytes(file.text.encode(file.encoding))
        done = engine("preview", file.name, status=None, cwd=folder)
        lines += [f"## {name}", *done.stdout.splitlines(), *(f"! {line}" for line in done.stderr.splitlines()), ""]
    assert unchanging("\n".join(lines)) == approved
