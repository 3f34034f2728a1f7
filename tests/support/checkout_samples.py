"""A payment in every state, as its page is to show it: for looking at, in tests of the layout and in pictures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from cambist.domain.payments import Status
from cambist.plugin import AddressFamily, ChainInfo, Token, Units
from cambist.services.receiving.checkout import CheckoutDeposit, CheckoutPayment
from cambist_evm.family import EvmFamily
from cambist_tron.config import TronConfig
from cambist_tron.family import TronFamily
from cambist_tron.plugin import TronPlugin
from cambist_web.checkout.build import checkout_view
from cambist_web.checkout.view import CheckoutView

NOW = datetime(2026, 5, 12, 14, 2, 18, tzinfo=UTC)
FAMILY = EvmFamily()
USDC = Token(symbol="USDC", contract="0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", decimals=6, label="USD Coin")
CHAIN = ChainInfo(
    id="ethereum",
    name="Ethereum",
    family="evm",
    tokens=(Token(symbol="ETH", contract=None, decimals=18, label="Ether"), USDC),
    confirmations=12,
    chain_id_num=1,
    is_evm=True,
    explorer_tx_url="https://etherscan.io/tx/{tx_id}",
    token_standard="ERC-20",
)
TRON = msgspec.structs.replace(TronPlugin().chains(TronConfig())[0], availability="live")
NETWORKS: dict[str, tuple[ChainInfo, AddressFamily]] = {"ethereum": (CHAIN, FAMILY), "tron": (TRON, TronFamily())}
PENDING = CheckoutPayment(
    address_mac=b"",
    payment_id="pay_0g3k7m9q2s4v6x8z1b5d0f7h3j",
    public_id="pub_5wq8e2r4t6y1m3n7b9v0c4x2za",
    shop_name="Nordlicht Coffee",
    mode="live",
    chain="ethereum",
    token="USDC",
    contract=USDC.contract,
    decimals=6,
    address="0x71C7656EC7ab88b098defB751B7401B5f6d8976F",
    amount=Decimal("49.50"),
    fiat_currency="eur",
    exchange_rate=Decimal("0.9231"),
    expected=Units(53_623_659),
    received=Units(0),
    required_confirmations=12,
    status=Status.PENDING,
    order_id="NC-10428",
    success_url="https://shop.example/thanks",
    cancel_url="https://shop.example/cart?lang=en",
    created_at=NOW - timedelta(minutes=12),
    expires_at=NOW + timedelta(minutes=47, seconds=42),
    updated_at=NOW,
    grace=timedelta(0),
    is_suspended=False,
)


def deposit(units: int, *, confirmations: int = 4, confirmed: bool = False, **more: Any) -> CheckoutDeposit:
    """Return a transfer of USDC."""
    fields: dict[str, Any] = {
        "chain": "ethereum", "token": "USDC", "decimals": 6, "units": Units(units),
        "tx_id": "0x8f3a51c0e95f4a5be9d2c41d4a1b7e02ab19c6d5e7f8091a2b3c4d5e6f708192",
        "mined_at": NOW - timedelta(hours=2),
        "height": 1000, "head": 1000 + confirmations, "finalized": None, "required_confirmations": 12,
        "confirmed": confirmed, "confirmed_at": NOW if confirmed else None,
        "matches": True,
    }  # fmt: skip
    return CheckoutDeposit(**{**fields, **more})


def payment(status: Status = Status.PENDING, *deposits: CheckoutDeposit, **more: Any) -> CheckoutPayment:
    """Return a payment that received what these transfers brought."""
    received = sum(deposit.units for deposit in deposits if deposit.matches)
    return msgspec.structs.replace(PENDING, status=status, deposits=deposits, received=received, **more)


def view(of: CheckoutPayment, now: datetime = NOW) -> CheckoutView:
    """Return what its page shows."""
    return checkout_view(of, now, *NETWORKS[of.chain])


_WHOLE = PENDING.expected
_ROUND: dict[str, Any] = {"expected": Units(10_000_000), "fiat_currency": None, "exchange_rate": None}
_TRON: dict[str, Any] = {
    "chain": "tron", "token": "USDT", "contract": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "required_confirmations": 19,
    "address": "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH",
}  # fmt: skip
_TRON_TX = "57b7d31df22f8d6cb0e1ff1e60cf6bc6ec4b4a40f8ab6c9a1d1cf9ab2b4e3a10"
_OVER = {"expires_at": NOW - timedelta(hours=1)}

SAMPLES: dict[str, CheckoutPayment] = {
    "pending": payment(),
    "pending-sandbox": payment(
        mode="sandbox", token="ETH", contract=None, decimals=18, expected=Units(12_345_678_901_234_567),
        fiat_currency=None, exchange_rate=None, order_id=None, cancel_url=None,
    ),
    "part-paid": payment(Status.PENDING, deposit(2_500_000), **_ROUND),
    "suspended": payment(is_suspended=True),
    "time-is-up": payment(expires_at=NOW),
    "detected": payment(Status.DETECTED, deposit(_WHOLE, confirmations=0)),
    "confirming": payment(Status.CONFIRMING, deposit(_WHOLE)),
    "paid": payment(Status.PAID, deposit(_WHOLE, confirmed=True)),
    "overpaid": payment(Status.OVERPAID, deposit(_WHOLE + 6_376_341, confirmed=True)),
    "underpaid": payment(
        Status.UNDERPAID, deposit(2_500_000, confirmed=True), deposit(5_000_000, token="USDT", matches=False), **_ROUND,
        **_OVER,
    ),
    "expired": payment(Status.EXPIRED, **_OVER),
    "late": payment(Status.EXPIRED, deposit(_WHOLE, mined_at=NOW - timedelta(minutes=2)), **_OVER),
    "failed": payment(Status.FAILED, **_OVER),
    "refunded": payment(Status.REFUNDED, deposit(_WHOLE, confirmed=True)),
    "pending-tron": payment(**_TRON),
    "confirming-tron": payment(
        Status.CONFIRMING,
        deposit(
            _WHOLE, confirmations=12, chain="tron", token="USDT", tx_id=_TRON_TX, required_confirmations=19,
            finalized=994,
        ),
        **_TRON,
    ),
}  # fmt: skip
