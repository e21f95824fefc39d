"""A warm standby: a second process that waits for the lock of a state directory, ready to go on from its newest
snapshot.

While another process holds the lock (the system gives it free when that process ends, however it ends) this one opens
no source and writes nothing. It loads each snapshot that is published, so that the file is known to be whole and its
pages are in memory, has its kernels compiled, and has noticed that the state was made with its settings. /readyz says
"standby: follows snapshot N".
"""

import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from structlog.typing import FilteringBoundLogger

from stream_engine.data.comparisons import Quadruplet, Triplet
from stream_engine.service import wiring
from stream_engine.service.heartbeat import Heartbeat
from stream_engine.service.http.seen import Seen, is_asked_for
from stream_engine.service.metrics import Metrics
from stream_engine.service.requests import Requests
from stream_engine.service.settings import Settings
from stream_engine.state.engine import Engine
from stream_engine.state.store import Lock, NoSuchSnapshot, StateInUse, Store

POLL_SECONDS = 0.2  # between attempts to take the lock


def wait_for_lock(
    settings: Settings, directory: Path, requests: Requests, metrics: Metrics, log: FilteringBoundLogger
) -> Lock | None:
    """The lock of the state directory, taken as soon as nobody has it; None when someone asked to stop before.

    Raises `BadSettings` where the state was made with other settings, `OSError`, `Corrupt`.
    """
    try:
        return Lock(directory)
    except StateInUse as error:
        log.info("standby: waits until the state is free", problem=str(error))
    with ExitStack() as stack:
        store = Store(directory, signing=wiring.signing(settings))
        follower, heartbeat = _Follower(settings, store, log), Heartbeat(settings.http.wedged_after)
        metrics.standby.set(1)
        stack.callback(metrics.standby.set, 0)
        elsewhere = Path(stack.enter_context(TemporaryDirectory()))  # DIR/served is the other process's
        seen = Seen(elsewhere, metrics, lambda: None, follower.why_not_ready, heartbeat=heartbeat, requests=requests)
        if is_asked_for(settings):
            from stream_engine.service.http.serving import serve

            serve(seen, settings.listen, settings.http, log, stack)
        with heartbeat.long("compiling"):
            follower.warm()
        while not requests.stop:
            heartbeat.tick()
            try:
                lock = Lock(directory)
            except StateInUse:
                follower.follow()
                time.sleep(POLL_SECONDS)
                continue
            log.warning("standby: the state is free, takes over", snapshot=follower.sequence)
            return lock
    return None


class _Follower:
    """What a standby knows: `sequence` is the number of the newest snapshot that it has loaded, 0 before the first."""

    def __init__(self, settings: Settings, store: Store, log: FilteringBoundLogger):
        self._settings, self._store, self._log = settings, store, log
        self.sequence = 0
        self._snapshot: object = None  # held, so that its pages stay mapped

    def why_not_ready(self) -> str:
        """For /readyz."""
        return f"standby: follows snapshot {self.sequence}"

    def warm(self) -> None:
        """Have what is compiled on first use loaded."""
        engine = wiring.restored(self._settings, None)
        engine.learn_many([Triplet("a", "b", "c"), Quadruplet(("a", "b"), ("c", "d"))])
        Engine.restore(engine.snapshot())

    def follow(self) -> None:
        """Load the newest snapshot, if it is another one than before."""
        if self._store.sequences()[-1:] in ([], [self.sequence]):
            return
        try:
            latest = self._store.latest()
        except (FileNotFoundError, NoSuchSnapshot):  # pruned between listing and reading
            return
        for problem in latest.damaged:
            self._log.warning("standby: snapshot damaged, follows the one before it", problem=problem)
        if latest.snapshot is None:
            return
        if not self.sequence:
            wiring.restored(self._settings, latest.snapshot)  # or the settings are others than the state's
            self._log.info("standby: follows", snapshot=latest.snapshot.sequence)
        self.sequence, self._snapshot = latest.snapshot.sequence, latest.snapshot
