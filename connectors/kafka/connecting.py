"""A client is opened in a thread, so that who polls keeps its timeout while a broker does not answer."""

import threading
from collections.abc import Callable
from typing import NamedTuple

from connectors.kafka.client import Client, UnopenedClient
from connectors.kafka.start_offsets import StartingPoints


class Opened(NamedTuple):
    """A client that reads, and from where on."""

    client: Client
    start: StartingPoints


class OpeningThread:
    """One attempt to open a client and to assign it its partitions; whoever asks decides whether there is another one.

    `assign(client, ended)` says where reading begins; it may wait for the network, but no longer once `ended` is set.
    """

    def __init__(self, unopened: UnopenedClient, assign: Callable[[Client, threading.Event], StartingPoints]):
        self._unopened, self._assign = unopened, assign
        self._ended = threading.Event()
        self._outcome: Opened | Exception | None = None  # once the thread is over
        self._thread = threading.Thread(target=self._run, name="kafka-opening", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome = self._opened()
        except Exception as error:  # raised again by `wait`, in the thread that asked
            self._outcome = error

    def _opened(self) -> Opened:
        client = self._unopened.open()
        try:
            return Opened(client, self._assign(client, self._ended))
        except BaseException:
            client.close()
            raise

    def wait(self, timeout: float) -> Opened | None:
        """The open client, which is then the caller's to close; None when it is not open within `timeout` seconds.

        Raises what went wrong, once.
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            return None
        outcome, self._outcome = self._outcome, None
        if isinstance(outcome, Exception):
            try:
                raise outcome
            finally:
                del outcome  # an error and the frames it came through must not hold each other, and what is in them
        return outcome

    def end(self) -> None:
        """Interrupt and wait a moment; a thread that still hangs in the network dies with the process."""
        self._ended.set()
        if self._thread.is_alive():
            self._unopened.interrupt()
        self._thread.join(3)
        if isinstance(self._outcome, Opened):
            self._outcome.client.close()
