"""Where a browser may go: the allow-list of its device, as it is written and as it is judged by. Pure.

An entry is an origin or a host: `https://example.org`, `http://127.0.0.1:8123`, `example.org`, `*.example.org`, `[::1]:8000`.
Without a scheme both http and https are meant, without a port the scheme's own. `*.` stands for any name below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from agents.errors import AgentsError

ENTRIES = 200
"""Of an allow-list."""
PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
SECURE = {"ws": "http", "wss": "https"}
"""By which scheme's entries a websocket goes."""
INERT = ("about:blank", "about:srcdoc")
"""Pages without content of their own."""
ENTRY = re.compile(r"(?:(https?)://)?(\*\.)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?::(\d{1,5}))?/?")
WRAPPED = (ip_network("64:ff9b::/96"), ip_network("2002::/16"), ip_network("2001::/32"))
"""IPv6 addresses that stand for others, which might be inside."""

Address = IPv4Address | IPv6Address


class SiteRejected(AgentsError):
    """An entry of an allow-list cannot be meant."""

    code = "site_rejected"


@dataclass(frozen=True)
class Site:
    """One entry: `scheme` empty for both, `port` None for the scheme's own."""

    scheme: str
    host: str
    port: int | None
    is_below: bool = False

    def fits(self, scheme: str, host: str, port: int) -> bool:
        if self.scheme and self.scheme != scheme:
            return False
        if port != (PORTS[scheme] if self.port is None else self.port):
            return False
        return host.endswith(f".{self.host}") if self.is_below else host == self.host


def read_site(entry: object) -> Site:
    """Raises SiteRejected."""
    found = ENTRY.fullmatch(entry) if isinstance(entry, str) and len(entry) <= 300 else None
    if found is None:
        raise SiteRejected(f"{str(entry)[:80]!r} is no origin and no host, such as https://example.org or *.example.org:8443")
    scheme, below, host, port = found.groups()
    if port is not None and not 0 < int(port) < 65_536:
        raise SiteRejected(f"{str(entry)[:80]!r} has a port that there is not")
    return Site(scheme or "", plain_host(host), None if port is None else int(port), bool(below))


def plain_host(host: str) -> str:
    """A host as it is compared: in small letters, without brackets and without the dot of the root."""
    return host.lower().strip("[]").rstrip(".")


@dataclass(frozen=True)
class Sites:
    """The whole allow-list."""

    entries: tuple[Site, ...]

    @classmethod
    def of(cls, allow: object) -> Sites:
        """Raises SiteRejected; nothing but a list is one."""
        if not isinstance(allow, list | tuple) or len(allow) > ENTRIES:
            raise SiteRejected(f"allow must be a list of at most {ENTRIES} origins or hosts")
        return cls(tuple(map(read_site, allow)))

    def why_refused(self, url: str, *, is_page: bool) -> str:
        """Why a page, or something that it loads, may not come from there; empty where it may.

        A page loads data of its own making too (data:, blob:), but is not shown such as a page.
        """
        if url in INERT or (not is_page and url.startswith(("data:", "blob:"))):
            return ""
        try:
            parts = urlsplit(url)
            host, port = plain_host(parts.hostname or ""), parts.port
        except ValueError:
            return "it is no address"
        if parts.scheme not in PORTS:
            return f"addresses that begin with {parts.scheme or 'nothing'}: are not opened"
        if parts.username is not None or parts.password is not None:
            return "it holds a name or a password"
        return self.why_not_host(parts.scheme, host, port or PORTS[parts.scheme])

    def why_not_host(self, scheme: str, host: str, port: int) -> str:
        """As `why_refused`, of a host and a port."""
        plain = SECURE.get(scheme, scheme)
        if any(site.fits(plain, host, port) for site in self.entries):
            return ""
        return f"{host}:{port} is not on the allow-list of the device"

    def why_not_tunnel(self, host: str, port: int) -> str:
        """As `why_not_host`, where it is not seen what is spoken."""
        schemes = [scheme for scheme in ("https", "http") if not self.why_not_host(scheme, host, port)]
        return "" if schemes else self.why_not_host("https", host, port)

    def why_not_address(self, host: str, address: str, port: int) -> str:
        """Why a host that is allowed may not be met at this address: one inside has to be on the list itself."""
        found = ip_address(address.partition("%")[0])
        found = found.ipv4_mapped or found if isinstance(found, IPv6Address) else found
        if is_public(found):
            return ""
        names = {str(found), *(["localhost"] if found.is_loopback and host == "localhost" else [])}
        if any(site.host in names and not self._other_port(site, port) for site in self.entries):
            return ""
        return f"{host} is {found}, which is inside; the allow-list would have to name {found}:{port}"

    @staticmethod
    def _other_port(site: Site, port: int) -> bool:
        return port not in ([site.port] if site.port is not None else [80, 443])


def is_public(address: Address) -> bool:
    return address.is_global and not address.is_multicast and not any(address in network for network in WRAPPED)
