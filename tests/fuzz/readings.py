"""No generated file is read wrongly without a word: `python -m tests.fuzz.readings --files 5000`.

Each file of `tests.support.generated_files` is read without options. It is right, or refused with a reason, or some of
its rows are rejected aloud and the others are right; anything else is wrong.
"""

import argparse
import tempfile
from collections import Counter
from pathlib import Path

from stream_engine.formats.options import UnusableOptions
from stream_engine.input.answers_in_words import answers
from stream_engine.input.decoding import RecordDecoder
from stream_engine.input.layout_inference import prepare
from stream_engine.input.settings import BadSettings
from stream_engine.input.settings.loading import load
from stream_engine.input.sources import event_options, source
from tests.support.generated_files import Generated, generated

RIGHT, REFUSED, ALOUD, WRONG = "right", "refused", "rejected aloud", "WRONG"


def outcome(file: Generated, folder: Path) -> tuple[str, str]:
    """What becomes of a file that is read without options, and what is said of it."""
    path = folder / file.name
    path.write_bytes(file.content)
    try:
        inferred = prepare(load(None, {"source": (str(path),)}, {})).raise_if_undecided()
        settings = inferred.settings
        ingest, found, rejected = (
            RecordDecoder(event_options(settings)._replace(provenance=True), settings.input.format),
            Counter(),
            0,
        )
        opened = source(settings, str(path), {})
        while not opened.finished():
            for block in ingest.blocks(opened.poll(1.0)):
                found.update((who, *canonical(names)) for who, answer in answers(block.decoded) for names in answer)
                rejected += len(block.dead_letters)
        opened.close()
    except (BadSettings, UnusableOptions) as error:
        return REFUSED, str(error)
    truth = Counter((who, *canonical(tuple(names))) for who, *names in file.truth.elements())
    if rejected and not found - truth:
        return ALOUD, inferred.line
    return (RIGHT if found == truth and not rejected else WRONG), inferred.line


def canonical(names: tuple[str, ...]) -> tuple[str, ...]:
    """A comparison with the objects of each pair in order."""
    return (*sorted(names[:2]), *sorted(names[2:])) if len(names) == 4 else names


def main() -> None:
    """Count the outcomes of many files, and show the wrong ones."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--files", type=int, default=2000)
    asked.add_argument("--first", type=int, default=0)
    asked.add_argument("--show", default=WRONG)
    given = asked.parse_args()
    counts, by_kind = Counter[str](), Counter[tuple[str, str]]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.first, given.first + given.files):
            file = generated(seed)
            told, said = outcome(file, Path(folder))
            counts[told] += 1
            by_kind[file.trap or file.what.partition(",")[0], told] += 1
            if told == given.show:
                print(seed, file.name, file.what, "->", said.replace(folder, "")[:300], flush=True)
    print(dict(counts))
    for (kind, told), n in sorted(by_kind.items()):
        print(f"{kind:32} {told:16} {n}")
    raise SystemExit(counts[WRONG] > 0)


if __name__ == "__main__":
    main()
