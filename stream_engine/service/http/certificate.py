"""The TLS certificate of a listener, which is read again when its files change."""

import errno
import os
import ssl
import time

from structlog.typing import FilteringBoundLogger

from stream_engine.input.settings import BadSettings

RENEWAL_SECONDS = 2.0  # seconds between looks for a renewed certificate


class Certificate:
    """The certificate that a listener shows, read again when its files change. Raises `BadSettings`."""

    def __init__(self, certificate: str, key: str | None):
        self._files = certificate, key
        self._loaded_status = self._status()
        self._checked_at = time.monotonic()
        self._failed_status: tuple[object, bool] | None = None  # files that cannot be used, and whether that was logged
        try:
            self.context = self._load()
        except OSError as error:  # ssl.SSLError among them
            raise BadSettings(
                f"http.tls_certificate, http.tls_key: got {certificate} and {key}: {error.strerror or error}; expected "
                "PEM files of a certificate and of its key"
            ) from None

    def renew_if_changed(self, log: FilteringBoundLogger, now: float, soon: bool) -> None:
        """Use what the files hold now, if they have changed. Where they do not fit together, or one is missing, because
        they are being replaced, the one in use stays."""
        if now - self._checked_at < RENEWAL_SECONDS and not soon:
            return
        self._checked_at, status = now, self._status()
        if status == self._loaded_status and not soon:
            return
        try:
            self.context = self._load()
        except OSError as error:
            if self._failed_status == (status, False):  # at the second look: in between, the other file may come
                problem = error.strerror or error
                log.warning("the TLS files cannot be used; the former certificate stays", problem=problem)
            self._failed_status = status, self._failed_status is not None and self._failed_status[0] == status
            return
        self._loaded_status, self._failed_status = status, None
        log.info("certificate loaded", file=self._files[0])

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*self._files, password=_no_password)
        return context

    def _status(self) -> tuple[object, ...]:
        statuses: list[object] = []
        for file in filter(None, self._files):
            try:
                status = os.stat(file)
                statuses.append((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
            except OSError as error:
                statuses.append(error.errno)
        return tuple(statuses)


def _no_password() -> str:
    raise OSError(errno.EINVAL, "the key is encrypted")  # else OpenSSL would ask for the password on the terminal
