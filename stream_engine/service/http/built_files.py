"""Files of a published snapshot, each built once for all requests and then sent from disk: DIR/served."""

import asyncio
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from stream_engine.data.available_memory import TooLarge
from stream_engine.data.threads import ONE_THREAD
from stream_engine.exports import NothingToExport
from stream_engine.exports.files import MEDIA_TYPES
from stream_engine.service.context import HttpContext
from stream_engine.service.http import make_export
from stream_engine.service.http.refusals import Refusals
from stream_engine.state.published import Published
from stream_engine.state.sweeping import SERVED, remove_exports

MAX_FOLDER_BYTES = 4 << 30  # of the folder
SMALL_BYTES = 256 << 10  # bytes of a snapshot, and of one (n, n) matrix of it, whose files are built in a thread
SMALL_DOCUMENT_BYTES = 64 << 20  # the same for `DOCUMENTS`, which are short whatever they tell of
DOCUMENTS = frozenset({"objects", "summary"})
_POLL_SECONDS = 0.1  # seconds between looks at a process
_PRIORITY = 10  # of the process: below ingestion


class NotNow(RuntimeError):
    """A file cannot be had at present; `reason` is one of `access.REASONS`, the message says why."""

    def __init__(self, why: str, reason: str = "no_room"):
        super().__init__(why)
        self.reason = reason


def later(error: NotNow, refusals: Refusals) -> Response:
    """503, counted."""
    refusals.tell(error.reason, why=str(error))
    return PlainTextResponse(f"{error}; try again later\n", 503, {"Retry-After": "5"})


class Key(NamedTuple):
    """What is built: from which snapshot and artifacts, what of them, and how it is written."""

    published: str
    what: str
    format: str


class BuiltExport(NamedTuple):
    """The files of a key, with the ETag of each."""

    folder: Path
    etags: dict[str, str]
    size: int


def fingerprint(published: Published) -> str:
    """What distinguishes a snapshot with its artifacts and its excluded participants from all others."""
    digests = sorted(f"{kind} {artifact.digest}" for kind, artifact in published.artifacts.items())
    content = [published.snapshot.digest, digests, published.excluded]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]


def is_small(published: Published, export: str) -> bool:
    """Whether an export is made in no time. Some orders and confidences of 4 MB take many seconds."""
    if export in (make_export.PAGE, make_export.FIGURES):
        return False
    snapshot = published.snapshot
    sizes = (array.nbytes for artifact in published.artifacts.values() for array in artifact.arrays.values())
    size = max(sum(array.nbytes for array in snapshot.arrays.values()), sum(sizes))
    if export in DOCUMENTS:
        return size <= SMALL_DOCUMENT_BYTES
    return max(size, 8 * len(snapshot.objects) ** 2) <= SMALL_BYTES


# Small ones are built in a thread, large ones one after the other in a process of its own, with low priority: ingestion
# and probes do not wait for the interpreter, and the memory is given back. Used from one event loop only, so there are
# no locks.
class BuiltFiles:
    """The files of a run; at most `MAX_FOLDER_BYTES` on disk, what is being sent aside."""

    def __init__(self, context: HttpContext):
        self._context = context
        self._folder = context.directory / SERVED
        remove_exports(self._folder)  # left by a process that was killed
        self._exports: dict[Key, asyncio.Future[BuiltExport]] = {}  # the longest unasked first
        self._generations = ["", ""]  # the fingerprints asked for last; another one may still be about to be sent
        self._worker, self._stop = ThreadPoolExecutor(1, "export"), threading.Event()
        self.n_begun = 0

    async def of(self, published: Published, export: str, format: str) -> BuiltExport:
        """The files of an export, built if nobody has asked for them yet. Raises `NothingToExport`, `NotNow`."""
        key = Key(fingerprint(published), export, format)
        if key.published not in self._generations:
            self._generations = [self._generations[1], key.published]
        building = self._exports.pop(key, None)
        if building is None:
            self.n_begun += 1
            worker = None if is_small(published, export) else self._worker
            folder = self._folder / f"export-{self.n_begun}"
            building = asyncio.get_running_loop().run_in_executor(worker, self._build, published, key, folder)
            building.add_done_callback(lambda done: done.cancelled() or done.exception())  # told to those who wait
        self._exports[key] = building  # the last to go
        try:
            files = await asyncio.shield(building)
        except Exception:
            if self._exports.get(key) is building:
                del self._exports[key]
            raise
        self._drop_surplus(key)
        return files

    def _drop_surplus(self, newest: Key) -> None:
        """Remove what belongs to older snapshots, and what is too much, the longest unasked first. A file that is being
        sent is open and goes on being sent."""
        finished_exports = {
            key: export.result() for key, export in self._exports.items() if export.done() and not export.exception()
        }
        size = sum(files.size for files in finished_exports.values())
        for key, files in finished_exports.items():
            if key != newest and (key.published not in self._generations or size > MAX_FOLDER_BYTES):
                del self._exports[key]
                size -= files.size
                self._worker.submit(shutil.rmtree, files.folder, ignore_errors=True)

    def _build(self, published: Published, key: Key, folder: Path) -> BuiltExport:
        try:
            folder.mkdir(parents=True)
            self._write(published, key, folder)
            self._check_size(key.what, folder)
            return BuiltExport(folder, {path.name: _etag(path) for path in sorted(folder.iterdir())}, size_of(folder))
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                raise NotNow(f"{key.what}: cannot be written: {error.strerror or error}") from None
            if isinstance(error, TooLarge):
                raise NotNow(str(error)) from None
            raise

    def _write(self, published: Published, key: Key, folder: Path) -> None:
        if is_small(published, key.what):
            make_export.write_files(published, key.what, key.format, folder)
        else:
            self._in_a_process(published.snapshot.sequence, key, folder)

    def _in_a_process(self, sequence: int, key: Key, folder: Path) -> None:
        memory = self._context.memory_for_exports()
        first_map = "quick" if "embedding" in self._context.running_refits() else ""
        arguments = (str(sequence), key.what, key.format, str(folder), "" if memory is None else str(memory), first_map)
        process = subprocess.Popen(
            [sys.executable, "-m", make_export.__name__, str(self._context.directory), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **ONE_THREAD, **self._context.secrets_for_exports},
            start_new_session=True,
        )
        self._context.export_processes.add(process.pid)
        try:
            os.setpriority(os.PRIO_PROCESS, process.pid, _PRIORITY)
            while process.poll() is None:
                if self._stop.wait(_POLL_SECONDS):
                    raise NotNow("the run is stopping", "busy")
                self._check_size(key.what, folder)
            output = process.stdout.read() if process.stdout else b""
        finally:
            process.kill()
            process.wait()
            self._context.export_processes.discard(process.pid)
            if process.stdout:
                process.stdout.close()
        status, why = process.returncode, (output.decode(errors="replace").strip().splitlines() or [""])[-1]
        if status == make_export.NOTHING_STATUS:
            raise NothingToExport(why)
        if status:
            problem = f"the process was ended by {signal.Signals(-status).name}" if status < 0 else why
            raise NotNow(
                f"{key.what}: could not be made: {problem}",
                "busy" if status == make_export.PRUNED_STATUS else "no_room",
            )

    def _check_size(self, what: str, folder: Path) -> None:
        size = size_of(folder)
        if size > MAX_FOLDER_BYTES:
            raise NotNow(
                f"{what}: takes {size:,} bytes or more, the limit is {MAX_FOLDER_BYTES:,}; use `stream-engine export`"
            )

    def close(self) -> None:
        """End what is being built, and remove the folder."""
        self._stop.set()
        self._worker.shutdown()
        remove_exports(self._folder)


class _File(FileResponse):
    chunk_size = 256 << 10  # a quarter of the loop's turns that starlette's 64 KB take


async def send_file(
    files: BuiltFiles,
    published: Published | None,
    key: tuple[str, str],
    name: str,
    request: Request,
    refusals: Refusals,
) -> Response:
    """A file of an export (what, format), sent from disk. Its ETag follows from its content; ranges are served. 404
    where there is none, 503 where it cannot be had at present."""
    try:
        if published is None:
            raise NothingToExport("nothing is published yet")
        files_of_export = await files.of(published, *key)
        if name not in files_of_export.etags:
            raise NothingToExport(f"no such export: {name}; there are {', '.join(sorted(files_of_export.etags))}")
    except NothingToExport as error:
        return PlainTextResponse(f"{error}\n", 404)
    except NotNow as error:
        return later(error, refusals)
    headers = {"ETag": files_of_export.etags[name], "Cache-Control": "no-cache"}  # kept, and asked about each time
    tags = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if files_of_export.etags[name] in tags or "*" in tags:
        return Response(status_code=304, headers=headers)
    path = files_of_export.folder / name
    return _File(path, headers=headers, media_type=MEDIA_TYPES.get(path.suffix))  # None: by the suffix


def size_of(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(entry.stat().st_size for entry in os.scandir(folder))


def _etag(path: Path) -> str:
    """The content's digest: equal content has an equal tag, whatever made it."""
    with path.open("rb") as file:
        return f'"{hashlib.file_digest(file, "sha256").hexdigest()[:32]}"'
