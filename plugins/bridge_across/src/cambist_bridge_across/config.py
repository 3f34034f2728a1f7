"""The operator's table ``[plugins.bridge_across]``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Final
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from .addresses import ZERO, parse_address

_BASE_URL: Final = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?", re.ASCII)
_KEY: Final = re.compile(r"[!-~]{1,512}", re.ASCII)
_INTEGRATOR: Final = re.compile(r"0x[0-9a-fA-F]{4}", re.ASCII)
PPM_PER_PERCENT: Final = 10_000
_PERCENT_MAX: Final = 50


class ChainTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.bridge_across.chains.<id>]``: contracts in the place of the pinned ones. None keeps the pinned one."""

    spoke_pool: str | None = None
    wrapped_native: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is no address, with the setting's name."""
        for name, value in (("spoke_pool", self.spoke_pool), ("wrapped_native", self.wrapped_native)):
            if value is not None and parse_address(value) in {None, ZERO}:
                raise ValueError(f"{name} is no address, or its checksum is wrong")


class AcrossConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.bridge_across]``. ``fee_max_percent`` is the most of a deposit that a quote may cost."""

    base_url: str = "https://app.across.to/api"
    allow_http: bool = False
    key: str | None = None
    integrator_id: str | None = None
    requests_per_second: Annotated[int, Meta(ge=1, le=1000)] = 2
    timeout_ms: Annotated[int, Meta(ge=100, le=60_000)] = 5000
    fee_max_percent: Decimal = Decimal(3)
    chains: Mapping[str, ChainTable] = {}

    def __post_init__(self) -> None:
        """Refuse what is well-formed and means nothing, with the setting's name."""
        if _BASE_URL.fullmatch(self.base_url) is None:
            raise ValueError("base_url is an http or https address without a query")
        if self.base_url.startswith("http:") and not (self.allow_http or _is_loopback(self.base_url)):
            raise ValueError("base_url is of another machine, so it must be https: allow_http = true does without")
        if self.key is not None and _KEY.fullmatch(self.key) is None:
            raise ValueError("key is 1 to 512 visible characters")
        if self.integrator_id is not None and _INTEGRATOR.fullmatch(self.integrator_id) is None:
            raise ValueError('integrator_id is two bytes, written like "0x00a1"')
        percent = self.fee_max_percent
        if not (percent.is_finite() and 0 < percent <= _PERCENT_MAX) or percent * PPM_PER_PERCENT % 1:
            raise ValueError(f"fee_max_percent is above 0 and at most {_PERCENT_MAX}, with at most 4 decimals")

    @property
    def fee_max_ppm(self) -> int:
        """The most that a quote may cost, in millionths of the deposit."""
        return int(self.fee_max_percent * PPM_PER_PERCENT)

    @property
    def tail(self) -> bytes:
        """What is written behind a deposit's call, for Across to know who integrated it; the contract ignores it."""
        return b"" if self.integrator_id is None else bytes.fromhex("1dc0de" + self.integrator_id[2:])


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
