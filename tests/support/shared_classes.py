"""Classes of a Java program as the virtual machine keeps them once they are loaded and verified ("class data sharing"):
a start of the program with them takes a third less of the processor."""

import shutil
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

from tests.support.fetched_programs import cache

WEEK = 7 * 24 * 3600.0


def shared_classes(program: str, jars: Path, run: Callable[[str], object]) -> list[str]:
    """The option for Java that takes the classes of a program from a file, made on first use in the cache of this
    machine. `run` runs the program once to its end, with the option that writes the file. None where it wrote none.

    A file is for one Java and for the same `jars`, a folder, at the same place: for others, Java passes it over.
    """
    java = Path(shutil.which("java") or "java").resolve()
    with cache(f"{program}-classes") as folder:
        made_of = [(str(each), each.stat().st_mtime_ns if each.exists() else 0) for each in (java, jars.resolve())]
        file, part = folder / f"{blake2b(repr(made_of).encode(), digest_size=8).hexdigest()}.jsa", folder / "part"
        if not file.exists():
            for old in (each for each in folder.iterdir() if each.stat().st_mtime < time.time() - WEEK):
                old.unlink()
            part.unlink(missing_ok=True)
            run(f"-XX:ArchiveClassesAtExit={part}")
            if not part.exists():
                return []
            part.rename(file)
    return [f"-XX:SharedArchiveFile={file}"]
