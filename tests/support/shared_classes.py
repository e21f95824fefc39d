"""Classes of a Java program as the virtual machine keeps them once they are loaded and verified ("class data sharing"):
a start of the program with them takes a third less of the processor."""

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.support.fetched_programs import cache


def shared_classes(program: str, run: Callable[[str], object]) -> list[str]:
    """The option for Java that takes the classes of a program from a file, made on first use in the cache of this
    machine. `run` runs the program once to its end, with the option that writes the file. None where it wrote none."""
    java = Path(shutil.which("java") or "java").resolve()
    with cache(f"{program}-classes") as folder:
        version = java.stat().st_mtime_ns if java.exists() else 0
        file, part = folder / f"{version}.jsa", folder / "part"
        if not file.exists():
            part.unlink(missing_ok=True)
            run(f"-XX:ArchiveClassesAtExit={part}")
            if not part.exists():
                return []
            part.rename(file)
    return [f"-XX:SharedArchiveFile={file}"]
