"""Notifications to systemd of a service of `Type=notify`: ready, reloading, stopping, alive (sd_notify(3))."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress

STATUS_EVERY = 10.0  # seconds between two status lines, where no watchdog asks for more


class ServiceManager:
    """The other side of the socket. The variables are taken out of the environment: child processes are no services."""

    def __init__(self, environment: MutableMapping[str, str] = os.environ):
        address = environment.pop("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        usec, pid = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", "")
        of_us = not pid or pid == str(os.getpid())
        self._watchdog = int(usec) / 1e6 if usec.isascii() and usec.isdigit() and of_us else None
        self._end = threading.Event()

    def tell(self, **fields: object) -> None:
        """Send assignments such as READY=1. Never waits, and never fails."""
        if self._address:
            message = "\n".join(f"{name}={' '.join(str(value).split())}" for name, value in fields.items())
            with suppress(OSError, ValueError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
                connection.setblocking(False)
                connection.sendto(message.encode(errors="replace"), self._address)

    def tell_reloaded(self) -> None:
        """Tell that the configuration was loaded again, which is done by now."""
        self.tell(RELOADING=1, MONOTONIC_USEC=time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000)
        self.tell(READY=1)

    @contextmanager
    def watching(self, wedged: Callable[[], str], status: Callable[[], str]) -> Iterator[None]:
        """Ready until the block ends: a status line now and then, and a sign of life for the watchdog while `wedged`
        gives no reason against it."""
        if not self._address:
            yield
            return
        self.tell(READY=1, STATUS=status())
        thread = threading.Thread(target=self._watch, args=(wedged, status), name="systemd", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()

    def stopping(self) -> None:
        """Tell that the service ends; the watchdog is still told that it is alive."""
        self.tell(STOPPING=1, STATUS="stopping")

    def _watch(self, wedged: Callable[[], str], status: Callable[[], str]) -> None:
        pause = STATUS_EVERY if self._watchdog is None else min(self._watchdog / 3, STATUS_EVERY)
        while not self._end.wait(pause):
            if problem := wedged():
                self.tell(STATUS=problem)
            else:
                self.tell(WATCHDOG=1, STATUS=status())
