"""Proof that an address belongs to its payment: made when the address is derived, checked whenever it is shown.

Whoever can write to the database could put an address of their own in the place of a payment's, and every customer
would pay them. The MAC's key is derived from the application key, which the database does not hold.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec
import structlog

from cambist.secrets import SecretsBox
from cambist.services.errors import UnavailableError

log = structlog.get_logger(__name__)

PURPOSE = "payment address"
BOUND = ("payment_id", "public_id", "mode", "chain", "contract", "decimals", "address")
"""What an address is bound to, by columns' names: none of these ever changes, or says where money goes."""


class Row(Protocol):
    """What has a payment's columns by their names."""

    def __getitem__(self, name: str, /) -> Any: ...  # noqa: ANN401  columns differ in type


class AddressMacs:
    """Makes and checks the MACs of payments' addresses."""

    def __init__(self, box: SecretsBox) -> None:
        """Use the application keys in this box: the current one makes, all check."""
        self._box = box

    def of(self, payment: Row) -> bytes:
        """Return the MAC of a new payment's address."""
        return self._box.mac(_message(payment), purpose=PURPOSE)

    def holds(self, payment: Row, mac: bytes) -> bool:
        """Say whether the address is the one that was derived for this payment; log it where it is not."""
        if self._box.is_mac(mac, _message(payment), purpose=PURPOSE):
            return True
        log.error("ADDRESS NOT VERIFIED: a payment's row was changed", payment_id=payment["payment_id"])
        return False

    def check(self, payment: Row) -> None:
        """Refuse to show a payment whose row, with its ``address_mac``, was changed. Raises UnavailableError."""
        if not self.holds(payment, payment["address_mac"]):
            raise UnavailableError(
                "ADDRESS_NOT_VERIFIED", "The address of this payment cannot be verified. Do not pay to it."
            )


def _message(payment: Row) -> bytes:
    return msgspec.json.encode([payment[name] for name in BOUND])
