"""A client is opened in a thread, so that who polls keeps its timeout while a broker does not answer."""

import threading
from collections.abc import Callable
from typing import Self

from connectors.kafka.client import Client


class Opening:
    """A thread that opens a client. `client` is the one being opened, so that `end` can interrupt its waiting."""

    def __init__(self, work: Callable[[Self], Client | None], delay: float = 0.0):
        self.client: Client | None = None
        self._work, self._delay = work, delay
        self._result: Client | None = None
        self._error: Exception | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kafka-opening", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        if self._ended.wait(self._delay):
            return
        try:
            self._result = self._work(self)
        except Exception as error:  # raised again by `wait`, in the thread that asked
            self._error = error

    def wait(self, timeout: float) -> Client | None:
        """The open client, or None when it is not open within `timeout` seconds."""
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        if self._thread.is_alive():
            return None
        result, self._result = self._result, None  # handed over: the taker closes it
        return result

    def end(self) -> None:
        """Interrupt and wait a moment; a thread that still hangs in the network dies with the process."""
        self._ended.set()
        if self._thread.is_alive() and self.client is not None:
            self.client.interrupt()
        self._thread.join(3)
        if self._result is not None:
            self._result.close()
