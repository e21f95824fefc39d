"""The names of a listener, with which the Host and Origin headers of requests are compared."""

import ipaddress
import socket
from collections.abc import Collection

from starlette.datastructures import Headers

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def host_of(header: str) -> str:
    """The host of a Host header, without its port.

    >>> host_of("Example.org:80"), host_of("[::1]:9"), host_of("127.0.0.1")
    ('example.org', '::1', '127.0.0.1')
    """
    host, colon, port = header.rpartition(":")
    if not colon or not port.isdigit():
        host = header
    return host.strip("[]").rstrip(".").lower()


class Hosts:
    """The names of one listener: those of its address, and those that the settings allow (`*.example.org`, `*`).

    The Host header is compared with them, so that a page elsewhere cannot read this server through a name that was
    bound to its address (DNS rebinding). Starlette's `TrustedHostMiddleware` cannot say "any IP address", which a
    listener on all addresses needs: kubelets and Prometheus ask for the address of a pod.
    """

    def __init__(self, bound_to: str, allowed_hosts: Collection[str]):
        self._allowed_hosts = {name.lower() for name in allowed_hosts}
        self._any_address = ipaddress.ip_address(bound_to).is_unspecified
        self._names = {*_LOOPBACK, bound_to.lower(), socket.gethostname().lower()}

    def include_origin(self, origin: str, headers: Headers) -> bool:
        """Whether an Origin is a page of this listener: by the Host that was asked for, by the one that a proxy names,
        or by a name in the settings. No page elsewhere can make a browser send another X-Forwarded-Host."""
        scheme, _, authority = origin.lower().partition("://")
        if scheme not in ("http", "https"):  # "null", or an extension
            return False
        usual = {"http": ":80", "https": ":443"}[scheme]
        names_asked = (headers.get("host", ""), headers.get("x-forwarded-host", ""))
        if authority.removesuffix(usual) in {name.strip().lower().removesuffix(usual) for name in names_asked if name}:
            return True
        return self._allows(host_of(authority))

    def _allows(self, host: str) -> bool:
        return host in self._allowed_hosts or any(
            n.startswith("*.") and host.endswith(n[1:]) for n in self._allowed_hosts
        )

    def include(self, header: str) -> bool:
        """Whether a Host header names this listener. An address cannot be rebound: one bound to all takes any."""
        host = host_of(header)
        if host in self._names or "*" in self._allowed_hosts or self._allows(host):
            return True
        return self._any_address and _is_address(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
