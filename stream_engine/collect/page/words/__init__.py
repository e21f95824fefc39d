"""What the page says by itself, one TOML file a language: `en`, `de`, `fr`, `es`, and any other by `--words FILE`."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import msgspec

from stream_engine.input.settings import BadSettings

ENGLISH = "en"
_PLACES = re.compile(r"\{\w*\}")


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of them; {n} and {of} are numbers."""

    language: str
    title: str
    needs_script: str
    before: str
    agree: str
    how: str
    instructions: str
    begin: str
    how_far: str
    far: str
    go_on: str
    end_title: str
    end: str
    excluded: str
    code: str
    back: str
    odd_one_out: str
    more_like: str
    most_like: str
    several: str
    anchor: str
    choice: str
    choose: str
    please_choose: str
    sound: str
    no_connection: str
    closed: str
    stranger: str
    refused: str
    # those of older files are in English where they lack them
    decline: str = "I do not want to take part"
    declined: str = "You chose not to take part. No answers were stored. You can close this page."
    reconsider: str = "Go back"
    copy: str = "Copy the code"
    copied: str = "Copied."
    paused: str = "The study is paused. This page will continue automatically."


def shipped() -> tuple[str, ...]:
    """Languages whose words come with the program.

    >>> shipped()
    ('de', 'en', 'es', 'fr')
    """
    here = files("stream_engine.collect.page.words")
    return tuple(sorted(file.name[:-5] for file in here.iterdir() if file.name.endswith(".toml")))


def words_of(language: str, path: str | None = None) -> Words:
    """Those of a file; else those that are shipped for a language such as "de-AT"; else English. Raises `BadSettings`:
    file, key, what was got and expected."""
    if path is not None:
        return read(Path(path), english())
    name = language.partition("-")[0].lower()
    return read(_file(name)) if name in shipped() else english()


def english() -> Words:
    """Those that every translation is compared with."""
    return read(_file(ENGLISH))


def read(path: Path, like: Words | None = None) -> Words:
    """The words of a file; with numbers where `like` has them. Raises `BadSettings`."""
    where = f"--words {path}"
    try:
        words = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Words)
    except OSError as error:
        raise BadSettings(f"{where}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadSettings(f"{where}: {error}") from None
    for key in Words.__struct_fields__ if like is not None else ():
        got, wanted = (sorted(_PLACES.findall(getattr(words, key))) for words in (words, like))
        if got != wanted or not getattr(words, key).strip():
            expected = " and ".join(wanted) or "a text without {}"
            raise BadSettings(f"{where}: {key}: got {getattr(words, key)!r}, expected {expected}")
    return words


def _file(name: str) -> Path:
    return Path(str(files("stream_engine.collect.page.words") / f"{name}.toml"))
