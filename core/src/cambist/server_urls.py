"""What addresses of servers say: whether all read them alike, and whether the server is near, or proves who it is."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import parse_qs, urlsplit


def is_plain(url: str) -> bool:
    """Say whether all who read the address read the same: some see a host, or options, where others see a password."""
    try:
        named = urlsplit(url).netloc
    except ValueError:  # a bracket, which is for addresses of IPv6
        return False
    return "#" not in url and url.count("@") == named.count("@") <= 1


def knows_database(url: str) -> bool:
    """Say whether what is connected to is this machine, or proves to be the right one."""
    hosts, options = _hosts(url)
    # What the address leaves out, the driver takes from there.
    elsewhere = os.environ.get("PGHOST", "").split(",")
    hosts = [host for named in hosts or [""] for host in ([named] if named else elsewhere)]
    return _is_local(hosts) or (options.get("sslmode") or options.get("ssl")) == ["verify-full"]


def knows_redis(url: str) -> bool:
    if url.startswith("unix://"):
        return True
    hosts, options = _hosts(url)
    checks = options.get("ssl_cert_reqs", ["required"]) == ["required"] and "ssl_check_hostname" not in options
    return _is_local(hosts) or (url.startswith("rediss://") and checks)


def _hosts(url: str) -> tuple[Sequence[str], Mapping[str, list[str]]]:
    """Return the hosts of an address, which may also stand in its options, and these options."""
    parsed = urlsplit(url)
    options = parse_qs(parsed.query, keep_blank_values=True)
    named = parsed.netloc.rpartition("@")[2]
    hosts = [re.sub(r":[0-9]*$", "", one).strip("[]") for one in named.split(",")] if named else []
    return [*hosts, *(one for value in options.get("host", []) for one in value.split(","))], options


def _is_local(hosts: Sequence[str]) -> bool:
    """Without any host, the driver takes a socket of this machine. One that begins with a slash is a folder of them."""
    return all(one in {"", "localhost"} or one.startswith("/") or is_loopback(one) for one in hosts)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_every_address(host: str) -> bool:
    """Say whether listening there is listening on each address of the machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def over_http(value: object, where: str) -> Iterator[str]:
    """Name the settings of plugins, at any depth, that hold plain http addresses of other networks."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from over_http(item, f"{where}.{name}")
    elif isinstance(value, list):
        found = {name for item in value for name in over_http(item, where)}
        yield from sorted(found)
    elif isinstance(value, str) and value.lower().startswith("http://") and not _is_near(value):
        yield where


def _is_near(url: str) -> bool:
    """Say whether an address is of this machine or of a private network; of names, localhost alone tells that."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_private
    except ValueError:
        return False
