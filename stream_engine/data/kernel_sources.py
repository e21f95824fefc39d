"""The source files that determine what a compiled kernel does, and their digest.

A kernel's machine code contains the kernels that it calls and the values of the constants that it uses, whatever file
they are in. So these files are the ones that define kernels (they contain `njit`) and all files of the package that
those import, directly or not. Reading the whole package and following the imports takes about 5 ms (180 files, 1 MB).
"""

import os
import re
import time
from collections.abc import Mapping
from hashlib import blake2b

IMPORTED = time.time()  # before the first kernel was: `compiled.py` imports this file
_NAME = re.compile(rb"\w+")


class KernelSources:
    """The files below `package` that can change a kernel, as they are when this is made."""

    def __init__(self, package: str | os.PathLike) -> None:
        self._package = os.fspath(package)
        self._texts = _decisive(_texts(self._package), os.path.basename(self._package))

    def files(self) -> list[str]:
        """Their paths relative to the package, sorted."""
        return sorted(self._texts)

    def digest(self, *more: object) -> str:
        """32 hexadecimal digits of the names and bytes of the files, and of `more` by its repr."""
        whole = blake2b(repr(more).encode(), digest_size=16)
        for name in self.files():
            whole.update(blake2b(name.encode()).digest() + blake2b(self._texts[name]).digest())
        return whole.hexdigest()

    def unchanged_since(self, seconds: float) -> bool:
        """Whether no file was written, replaced or deleted after this time: else what a process has imported may not be
        what the digest says. Decided by the time of the last change of status, which nobody can set back."""
        now = time.time()  # later ones are of a clock that went wrong
        try:
            return not any(seconds < os.stat(os.path.join(self._package, name)).st_ctime <= now for name in self._texts)
        except FileNotFoundError:
            return False


def _texts(package: str) -> dict[str, bytes]:
    """Path relative to the package -> bytes, of every Python file."""
    texts, folders = {}, [""]
    while folders:
        folder = folders.pop()
        with os.scandir(os.path.join(package, folder)) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    with open(entry.path, "rb", buffering=0) as file:
                        texts[os.path.join(folder, entry.name)] = file.read()
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(os.path.join(folder, entry.name))
    return texts


def _decisive(texts: Mapping[str, bytes], package: str) -> dict[str, bytes]:
    """The files that define kernels, and those that they import from the package.

    >>> texts = {"a.py": b"from p.b import X\\n@njit", "b.py": b"X = 1", "c.py": b"from p import a"}
    >>> sorted(_decisive(texts, "p"))
    ['a.py', 'b.py']
    """
    target = rb" " + re.escape(package.encode()) + rb"\b([\w.]*)(?: import (\([^)]*\)|.*))?"
    imports = [re.compile(keyword + target) for keyword in (b"from", b"import")]
    todo = [name for name, text in texts.items() if b"njit" in text]
    decisive = set(todo)
    while todo:
        text = texts[todo.pop()]
        for module, names in (found for pattern in imports for found in pattern.findall(text)):
            path = module.decode().lstrip(".").replace(".", os.sep)
            paths = [path, *(os.path.join(path, name.decode()) for name in _NAME.findall(names))]
            for file in [os.path.join(each, "__init__.py") for each in paths] + [each + ".py" for each in paths]:
                if file in texts and file not in decisive:
                    decisive.add(file)
                    todo.append(file)
    return {name: texts[name] for name in decisive}
