"""The wheel: what it holds, that equal commits give equal bytes, that its version is the tag's, and that it works where
there is no checkout."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from email import message_from_bytes
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.conftest import ROOT

OF_GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", **{f"GIT_{who}_NAME": "a" for who in ("AUTHOR", "COMMITTER")}}
OF_GIT |= {f"GIT_{who}_EMAIL": "a@b.example" for who in ("AUTHOR", "COMMITTER")}
SURVEY = "anchor,near,far\n" + "lemon,lime,bread\nbread,bun,lime\nlime,lemon,bun\nbun,bread,lemon\n" * 5


def said(*command: str | Path, cwd: Path, **more: str) -> str:
    """What a command prints, run outside of the checkout: nothing of it is on Python's path."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "STREAM_"))}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env={**environment, **OF_GIT, **more}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def tracked() -> list[str]:
    """The files of the checkout that git knows, or would if they were added."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def copied(to: Path) -> Path:
    """The checkout's files at another place, with other times, and without git."""
    for name in tracked():
        if not name.startswith("tests/"):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)
    return to


def built(source: Path, out: Path) -> Path:
    """The wheel that `pip wheel` makes of a folder, with what builds it as it is in this environment."""
    wheel_of = "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", out, source
    said(sys.executable, "-m", "pip", *wheel_of, cwd=out, SOURCE_DATE_EPOCH="1700000000")
    (wheel,) = out.glob("*.whl")
    return wheel


def built_by_uv(source: Path, out: Path) -> Path:
    """The same by uv, in an environment with what `pyproject.toml` asks for and nothing else, in the same versions."""
    same = out / "versions"
    same.write_text("".join(f"{name}=={version(name)}\n" for name in ("setuptools", "setuptools-scm")))
    wheel_of = "--wheel", "--build-constraints", same, "-o", out, source
    by_uv("build", "-q", *wheel_of, cwd=out, SOURCE_DATE_EPOCH="1700000000")
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    """The wheel of a commit with the tag v9.8.7."""
    source = copied(tmp_path_factory.mktemp("source"))
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"], ["tag", "v9.8.7"]):
        said("git", *command, cwd=source)
    return built(source, tmp_path_factory.mktemp("dist"))


def test_it_holds_the_product_and_nothing_else(release):
    with zipfile.ZipFile(release) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    product = {name for name in tracked() if name.startswith(("stream_engine/", "connectors/"))}
    assert names == product
    assert release.stat().st_size < 2_500_000
    assert release.name == "triplet_stream_engine-9.8.7-py3-none-any.whl"


def test_the_same_files_give_the_same_bytes_and_the_tag_gives_the_version(release, tmp_path):
    """At another place, at another time, and by another tool."""
    (tmp_path / "elsewhere").mkdir()
    source = copied(tmp_path / "elsewhere")
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"], ["tag", "v9.8.7"]):
        said("git", *command, cwd=source)
    (tmp_path / "first").mkdir()
    assert built_by_uv(source, tmp_path / "first").read_bytes() == release.read_bytes()
    said("git", "commit", "-q", "--allow-empty", "-m", "after it", cwd=source)
    assert "9.8.8.dev1+g" in said(sys.executable, "-m", "setuptools_scm", cwd=source)


def test_its_readme_has_no_link_that_leads_nowhere(release):
    with zipfile.ZipFile(release) as wheel:
        (name,) = (each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
        told = message_from_bytes(wheel.read(name))
    assert told["Name"] == "triplet-stream-engine" and told["Description-Content-Type"] == "text/markdown"
    readme = told.get_payload()
    assert readme.startswith("# stream-engine")
    assert "](stream_engine/" not in readme
    assert "](SECURITY" not in readme
    spec = importlib.util.spec_from_file_location("readme_of_the_wheel", ROOT / "setup.py")
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    text = "[a](b/c.md), ![d](e.svg), [f](https://g.example), [h](#i)"
    assert setup.index_readme(text) == "a, , [f](https://g.example), [h](#i)"
    linked = setup.index_readme(text, "https://r.example")
    assert linked.startswith(
        "[a](https://r.example/blob/HEAD/b/c.md), ![d](https://r.example/raw/HEAD/e.svg), [f](https:"
    )


@cache
def environment_of_uv() -> dict[str, str]:
    """As `deploy/install-locked` sets it, by the settings of pip."""
    listed = said(sys.executable, "-m", "pip", "config", "list", cwd=ROOT)
    setting = {name: value.strip("'") for name, _, value in (line.partition("=") for line in listed.splitlines())}
    index = {"UV_DEFAULT_INDEX": os.environ.get("PIP_INDEX_URL", setting.get("global.index-url"))}
    index |= {"SSL_CERT_FILE": os.environ.get("PIP_CERT", setting.get("global.cert"))}
    index = {name: value for name, value in index.items() if value and name not in os.environ}
    return index | ({} if os.access(Path.home(), os.W_OK) else {"UV_NO_CACHE": "1"})


def by_uv(*command: str | Path, cwd: Path, **more: str) -> str:
    """What uv says to a command; its cache has what the lock file names."""
    return said(Path(sys.executable).with_name("uv"), *command, cwd=cwd, **environment_of_uv(), **more)


def take_bytecode(site: Path) -> None:
    """Put what Python compiled for this environment beside the same files of another one: those that come from the
    same file of uv's cache. Python compiles the others."""
    here = Path(sysconfig.get_path("purelib"))
    for source in site.rglob("*.py"):
        same = here / source.relative_to(site)
        bytecode = Path(importlib.util.cache_from_source(str(same)))
        if bytecode.exists() and source.samefile(same):
            target = Path(importlib.util.cache_from_source(str(source)))
            target.parent.mkdir(exist_ok=True)
            target.hardlink_to(bytecode)


def test_it_works_where_there_is_no_checkout(release, tmp_path):
    """An empty environment, a survey and the same as a spreadsheet, a page. Compiled code of the same sources is taken
    from the checkout and its environment."""
    kept = {"NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(ROOT / "stream_engine" / "__pycache__"))}
    said(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=tmp_path)  # uv installs
    python = tmp_path / "venv" / "bin" / "python"
    by_uv("pip", "install", "-q", "--python", python, f"{release}[excel]", cwd=python.parent)
    take_bytecode(next(python.parent.parent.glob("lib/python3*/site-packages")))
    said(Path(sys.executable).with_name("uv"), "pip", "check", "--python", python, cwd=tmp_path)
    engine = tmp_path / "venv" / "bin" / "stream-engine"
    assert said(engine, "--version", cwd=tmp_path) == "stream-engine, version 9.8.7\n"
    (tmp_path / "survey.csv").write_text(SURVEY)
    book = "import openpyxl; b = openpyxl.Workbook(); [b.active.append(r.split(',')) for r in open('survey.csv')]; "
    said(python, "-c", book + "b.save('survey.xlsx')", cwd=tmp_path)
    said(engine, "run", "survey.csv", "survey.xlsx", "--state", "state", cwd=tmp_path, **kept)
    said(engine, "export", "--state", "state", "--out", "out", cwd=tmp_path, **kept)
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["events"] == 2 * 20
    said(engine, "report", "--state", "state", "--out", "page.html", cwd=tmp_path, **kept)
    assert "lemon" in (tmp_path / "page.html").read_text()
    asked = "import stream_engine as se; print(se.read([('a', 'b', 'c')]), se.__file__)"
    assert str(tmp_path / "venv") in said(python, "-c", asked, cwd=tmp_path)
