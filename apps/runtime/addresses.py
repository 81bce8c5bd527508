"""Which network addresses this product may connect to: one guard for everything a tenant names.

A name is resolved once, every address it has is checked, and the connection goes to what was
checked, so a name that answers differently the second time (DNS rebinding) reaches nothing inside.
Whoever connects keeps the name for ``Host`` and for the certificate, and follows no redirect.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_ALSO_INSIDE = tuple(
    ipaddress.ip_network(network)
    for network in (
        "168.63.129.16/32",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "2001::/23",
        "3fff::/20",
        "5f00::/16",
    )
)
"""What counts as public to some versions of Python, and is not: protocol and documentation ranges,
and services for the machine itself on public addresses (Azure's)."""


class AddressRefused(ValueError):
    """The address is not one that may be reached. The text is a short code, never the address."""


@dataclass(frozen=True)
class AllowList:
    """What an operator lets be reached although it is inside: hosts, ``host:port``, networks.

    ``hosts`` and ``ports`` are names or addresses as they stand in a URL, ``networks`` what a name
    resolves to.
    """

    hosts: frozenset[str] = frozenset()
    ports: frozenset[tuple[str, int]] = frozenset()
    networks: tuple[IPNetwork, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> "AllowList":
        """Return the list written as ``host``, ``host:port``, ``[v6]:port``, an address, or a CIDR.

        Raises ``ValueError`` naming the entry that is none of these.
        """
        hosts: set[str] = set()
        ports: set[tuple[str, int]] = set()
        networks: list[IPNetwork] = []
        for entry in entries:
            text = entry.strip().lower()
            if (network := _network(text)) is not None:
                networks.append(network)
                if "/" not in text:
                    hosts.add(str(network.network_address))
                continue
            host, port = _host_and_port(text)
            if port is None:
                hosts.add(host)
            else:
                ports.add((host, port))
        return cls(frozenset(hosts), frozenset(ports), tuple(networks))

    def names(self, host: str, port: int) -> bool:
        """Whether ``host`` may be reached at ``port`` whatever it resolves to."""
        name = host.lower().rstrip(".")
        return name in self.hosts or (name, port) in self.ports

    def holds(self, address: IPAddress) -> bool:
        """Whether one of the networks has ``address``."""
        return any(address in network for network in self.networks)


def host_check(host: str, port: int, allowed: AllowList) -> None:
    """Refuse a ``host`` that is itself an address inside. What a name leads to is not asked.

    Raises ``AddressRefused``.
    """
    address = _parsed(host)
    if address is not None and not allowed.names(host, port) and not _reachable(address, allowed):
        raise AddressRefused("private_address")


def addresses_check(
    host: str, port: int, resolved: Sequence[str], allowed: AllowList
) -> tuple[str, ...]:
    """Return the addresses of ``host`` to connect to, in order.

    Raises ``AddressRefused`` when one of them is inside and not allowed: a name with one public and
    one private address is an attack or a mistake.
    """
    if not resolved:
        raise AddressRefused("no_address")
    if allowed.names(host, port):
        return tuple(resolved)
    for text in resolved:
        address = _parsed(text)
        if address is None or not _reachable(address, allowed):
            raise AddressRefused("private_address")
    return tuple(resolved)


def is_public(address: IPAddress) -> bool:
    """Whether ``address`` is on the public internet; what it carries inside (mapped, 6to4, NAT64)
    counts."""
    inner = _carried(address)
    if inner is not None:
        return is_public(inner)
    if address.is_multicast or address.is_reserved:
        return False
    if any(address in network for network in _ALSO_INSIDE):
        return False
    return address.is_global and not getattr(address, "is_site_local", False)


def _reachable(address: IPAddress, allowed: AllowList) -> bool:
    carried = _carried(address) or address
    return is_public(address) or allowed.holds(address) or allowed.holds(carried)


def _carried(address: IPAddress) -> ipaddress.IPv4Address | None:
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour


def _parsed(text: str) -> IPAddress | None:
    """Return the address in ``text``, without brackets and zone; ``None`` for a name."""
    try:
        return ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None


def _network(text: str) -> IPNetwork | None:
    try:
        return ipaddress.ip_network(text.strip("[]"), strict=False)
    except ValueError:
        if "/" in text:
            raise ValueError(f"{text} is not a network") from None
        return None


def _host_and_port(text: str) -> tuple[str, int | None]:
    host, colon, port = text.rpartition(":")
    if not colon:
        host, port = text, ""
    if not host or (any(sign in host for sign in "/:@ ") and not host.startswith("[")):
        raise ValueError(f"{text!r} is not host, host:port or a network")
    if not colon:
        return host, None
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} has no port after the colon")
    return host.strip("[]"), int(port)
