"""Which hosts may be called: anywhere public, and inside only where the installation names the host."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Protocol

WRAPPED = (ip_network("64:ff9b::/96"), ip_network("2002::/16"), ip_network("2001::/32"))
"""IPv6 addresses that stand for others, which might be inside."""


class Hosts(Protocol):
    """Hosts by their names, in small letters, and networks of addresses (project.environment)."""

    @property
    def names(self) -> frozenset[str]: ...

    @property
    def networks(self) -> Sequence[IPv4Network | IPv6Network]: ...


def is_reachable(host: str, address: str, inside: Hosts) -> bool:
    """Whether a call to `host` may go to `address`: it is public, or `inside` names one of the two."""
    found = ip_address(address.split("%")[0])
    if is_named(host, inside) or any(found in network for network in inside.networks):
        return True
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return _is_public(found)


def is_named(host: str, inside: Hosts) -> bool:
    """Whether `inside` names the host, or the network that an address lies in."""
    if host.lower() in inside.names:
        return True
    return is_address(host) and any(ip_address(host) in network for network in inside.networks)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not address.is_multicast and not any(address in network for network in WRAPPED)


def is_address(host: str) -> bool:
    """Whether a host is written as an address."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
