"""What an account's page shows, ready to print."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from .view import Tone

State: TypeAlias = Literal["confirming", "confirmed", "held", "gone"]


class Coin(Struct, frozen=True, kw_only=True):
    """A token that is taken. ``least`` is the least that counts, where that is more than its smallest unit."""

    symbol: str
    least: str | None


class NetworkTab(Struct, frozen=True, kw_only=True):
    """One of the account's networks, to be chosen."""

    chain: str
    name: str
    chosen: bool


class DepositBox(Struct, frozen=True, kw_only=True):
    """The chosen network: what is taken, and where to send it.

    ``late`` tells why deposits are noticed late, ``closed`` why nothing should be sent at all: then there is no
    address. ``alike`` says on which networks the address is the same.
    """

    network: str
    standard: str | None
    coins: tuple[Coin, ...]
    address_head: str
    address_middle: str
    address_tail: str
    qr_text: str
    alike: str | None
    warning: str
    late: str | None
    closed: str | None

    @property
    def address(self) -> str:
        """The address in one piece."""
        return self.address_head + self.address_middle + self.address_tail


class DepositLine(Struct, frozen=True, kw_only=True):
    """A deposit that arrived. ``url`` is None where no block explorer shows it."""

    amount: str
    network: str
    tx_id: str
    tx_short: str
    url: str | None
    time_iso: str
    time: str
    state: State
    detail: str


class AccountView(Struct, frozen=True, kw_only=True):
    """The only input of the template of an account's page. ``box`` is None when nothing should be sent."""

    public_id: str
    title: str
    shop_name: str
    sandbox: bool
    status: str
    tone: Tone
    chip: str
    headline: str
    message: str
    tabs: tuple[NetworkTab, ...]
    box: DepositBox | None
    deposits: tuple[DepositLine, ...]
    has_earlier: bool
    refresh_s: int
