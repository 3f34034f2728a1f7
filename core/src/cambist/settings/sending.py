"""The tables about keys, what may be signed with them, and how it is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from .group import Address, Group


class KeySettings(Group, frozen=True, kw_only=True):
    """Seeds and keys. Only who signs reads ``passphrase``; elsewhere it is None.

    ``application_key`` is 64 hexadecimal characters and encrypts what must be read back; ``previous_keys`` still
    decrypt what was encrypted before it was rotated. ``stock`` is how many merchants can register ahead.
    """

    keystore: Path | None = None
    passphrase: Annotated[str, Meta(min_length=12, max_length=1024)] | None = None
    application_key: Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{64}$")] | None = None
    previous_keys: tuple[Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{64}$")], ...] = ()
    stock: Annotated[int, Meta(ge=1, le=100_000)] = 100


AMOUNT = r"(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?"
UNLIMITED = "unlimited"
Name = Annotated[str, Meta(min_length=1, max_length=128)]
Amounts = dict[Name, Annotated[str, Meta(pattern=f"^{AMOUNT}$")]]
Caps = dict[Name, Annotated[str, Meta(pattern=f"^({AMOUNT}|{UNLIMITED})$")]] | Literal["unlimited"]
Addresses = dict[Name, tuple[Address, ...]]


class AskerSettings(Group, frozen=True, kw_only=True):
    """Caps for what one kind of asker may have signed within an hour, for each merchant.

    ``hourly_caps`` bound all that leaves, ``fresh_address_caps`` and ``fresh_payouts_per_hour`` what goes to fresh
    addresses without the delay: amounts, and how many transfers.
    """

    hourly_caps: Caps = field(default_factory=dict)
    fresh_address_caps: Caps = field(default_factory=dict)
    fresh_payouts_per_hour: Annotated[int, Meta(ge=0, le=10_000_000)] | Literal["unlimited"] | None = None


class SignerSettings(Group, frozen=True, kw_only=True):
    """What may be signed, whoever asks for it. Without an entry there is no such limit, except for sessions.

    ``session`` is for payouts and refunds that a merchant asks for in person, ``key`` for those that a program asks for
    with an API key. "unlimited", for a name or instead of a table, says that a limit is missing on purpose.

    The caps, limits and amounts are in tokens by ``chain/SYMBOL``, fees in the native coin by chain, addresses by
    chain, and ``floor_rates`` in what is bought for one of what is sold, by ``chain/SOLD -> chain/BOUGHT``.
    ``fresh_address_delay_s`` is a day in production and nothing in development, unless it is set.
    ``approvals_by_api`` lets a person answer over the gateway, by codes that the signer verifies.
    """

    separate: bool = False
    socket: Path | None = None
    socket_group: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    store: Path | None = None
    approvals_by_api: bool = False
    hourly_caps: Caps = field(default_factory=dict)
    fresh_address_caps: Caps = field(default_factory=dict)
    session: AskerSettings = AskerSettings()
    key: AskerSettings = AskerSettings()
    fresh_address_delay_s: Annotated[int, Meta(ge=0, le=86_400 * 30)] | None = None
    approval_limits: Amounts = field(default_factory=dict)
    allowed_addresses: Addresses = field(default_factory=dict)
    fee_caps: Caps = field(default_factory=dict)
    fee_hourly_caps: Caps = field(default_factory=dict)
    delegates: Addresses = field(default_factory=dict)
    floor_rates: Amounts = field(default_factory=dict)


class GasSettings(Group, frozen=True, kw_only=True):
    """The platform's own addresses, which pay for gas. What is low is in the native coin, by chain."""

    low_balance: Amounts = field(default_factory=dict)
    low_stake: Amounts = field(default_factory=dict)


class OutboundSettings(Group, frozen=True, kw_only=True):
    """How the gateway sends.

    ``in_flight_max`` is how many transactions of one address may wait to be mined: nodes keep few of them.
    ``rebroadcast_s`` after which the same bytes are sent again, ``stuck_after_s`` after which a higher fee is paid.
    ``wallet_gas_transfers`` is for how many transfers at once a main wallet gets its gas. ``nonce_jump_max`` is how
    many transactions of an address that the books do not know of are believed of one endpoint alone.
    """

    enabled: bool = True
    in_flight_max: Annotated[int, Meta(ge=1, le=5_000)] = 16
    batch_max: Annotated[int, Meta(ge=1, le=1_000)] = 200
    rebroadcast_s: Annotated[float, Meta(ge=0.1, le=3_600)] = 30.0
    stuck_after_s: Annotated[float, Meta(ge=0.1, le=86_400)] = 180.0
    collect_interval_ms: Annotated[int, Meta(ge=100, le=3_600_000)] = 10_000
    wallet_gas_transfers: Annotated[int, Meta(ge=1, le=1_000)] = 20
    nonce_jump_max: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 100
