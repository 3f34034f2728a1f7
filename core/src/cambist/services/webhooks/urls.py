"""Where webhooks may go: rules for the text of a URL, and for the address that is finally connected to.

Text is checked when a merchant enters it, for an early and clear answer. What protects the inside is the check
of the address at the moment of connecting, whatever a name resolves to by then.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable
from functools import lru_cache

from aiohappyeyeballs import AddrInfoType
from yarl import URL

from cambist.services.errors import InvalidError
from cambist.settings import WebhookTargets

URL_CHARS_MAX = 2048
RECEIVED_BYTES = 16 * 1024
"""How much a receiver can send ahead of what is read."""
CHECKED_URLS_MAX = 1024
PORT_HIGH_MIN = 1024
PORTS_REFUSED = frozenset(
    map(
        int,
        """1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115
        117 119 123 135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563
        587 601 636 989 990 993 995""".split(),
    )
)
"""Below 1024, the ports of other services, such as mail, that an HTTP request must not be aimed at.

They are those that browsers refuse: https://fetch.spec.whatwg.org/#port-blocking
"""

_PLAIN = re.compile(r"https?://[!-~]+", re.IGNORECASE)
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMERIC_LABEL = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)", re.IGNORECASE)
_LOCAL_NAMES = ("localhost", "local", "internal", "localdomain", "home.arpa")

# Both tables: the IANA special-purpose registries, multicast, and what is reserved.
_DENIED_V4 = tuple(
    ipaddress.IPv4Network(net)
    for net in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # the host of Azure's virtual machines, a public address that is none
        "169.254.0.0/16",  # link-local, with the clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, with broadcast
    )
)
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_DENIED_V6 = tuple(
    ipaddress.IPv6Network(net)
    for net in (
        "2001::/23",  # protocol assignments, with Teredo and ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which carries an IPv4 address
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)


def is_public_address(text: str) -> bool:
    """Whether an IP address is one of the open internet. What cannot be read is not.

    Of IPv6 only global unicast is: so NAT64, IPv4-compatible, unique local and all other ranges are out.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is None:
            return address in _GLOBAL_V6 and not any(address in net for net in _DENIED_V6)
        address = address.ipv4_mapped
    return not any(address in net for net in _DENIED_V4)


def guarded_socket_factory(*, allow_private: bool) -> Callable[[AddrInfoType], socket.socket]:
    """Return what makes the connector's sockets: none for an address that is not public.

    The argument is the very address that is connected to next, so no later answer of a name server matters.
    """

    def make(info: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = info
        if not allow_private and not is_public_address(str(address[0])):
            raise OSError("the target's address is not public")
        made = socket.socket(family, kind, protocol)
        # What is read at once keeps all others waiting while it is looked at.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)
        return made

    return make


@lru_cache(CHECKED_URLS_MAX)
def webhook_url_refusal(url: str, targets: WebhookTargets) -> str | None:
    """Return why a webhook cannot go to this URL, as the rest of a sentence; None where it can."""
    if len(url) > URL_CHARS_MAX:
        return f"has more than {URL_CHARS_MAX} characters"
    if not _PLAIN.fullmatch(url) or "\\" in url:
        return "is no http or https URL in plain ASCII (names in punycode, other characters percent-encoded)"
    try:
        parsed = URL(url)
        host, port = parsed.raw_host or "", parsed.port or 0
    except ValueError:
        return "is no well-formed URL"
    if "@" in parsed.raw_authority:
        return "holds a user name or password"
    if port == 0 or port in PORTS_REFUSED:
        return f"names port {port}, which is another service's; 80, 443 and ports from {PORT_HIGH_MIN} are possible"
    if parsed.scheme == "http" and not targets.allow_http:
        return "must be https: what is sent over http can be read and dropped on the way"
    return _host_refusal(host.rstrip(".").lower(), allow_private=targets.allow_private)


def _host_refusal(name: str, *, allow_private: bool) -> str | None:
    if not name:
        return "names no host"
    if ":" in name or _NUMERIC_LABEL.fullmatch(name.rpartition(".")[2]):
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return "names an IP address in an unusual way"
        return None if allow_private or is_public_address(name) else "names an address that is not public"
    if not _NAME.fullmatch(name):
        return "names a host that is none"
    if not allow_private and any(name == local or name.endswith(f".{local}") for local in _LOCAL_NAMES):
        return "names a host that is not public"
    return None


def check_webhook_url(url: str, targets: WebhookTargets, *, field: str = "webhookUrl") -> None:
    """Refuse a URL that no webhook can go to: InvalidError, naming the field of the request."""
    if (refusal := webhook_url_refusal(url, targets)) is not None:
        raise InvalidError.field(field, refusal)
