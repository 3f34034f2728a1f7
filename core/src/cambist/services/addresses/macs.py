"""Proof that an address is its payment's or account's: made when it is derived, checked whenever it is shown.

Whoever can write to the database could put an address of their own in the place of another, and every customer would
pay them. The MAC's key is derived from the application key, which the database does not hold.
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


ACCOUNT_PURPOSE = "account address"
ACCOUNT_BOUND = ("account_id", "public_id", "mode", "external_id", "chain", "address")
"""What an account's address on one chain is bound to: with whose it is, since the same end user pays to it for ever."""


class Row(Protocol):
    """What has a payment's columns by their names, or those of an account and one of its chains."""

    def __getitem__(self, name: str, /) -> Any: ...  # noqa: ANN401  columns differ in type


class AddressMacs:
    """Makes and checks the MACs of payments' and accounts' addresses."""

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

    def of_account(self, account: Row) -> bytes:
        """Return the MAC of an account's address on one chain."""
        return self._box.mac(_account_message(account), purpose=ACCOUNT_PURPOSE)

    @property
    def prefix(self) -> bytes:
        """What every proof begins with that the current key made."""
        return self._box.mac_prefix

    def account_holds(self, account: Row, mac: bytes) -> bool:
        """Say whether this is the address that the account was given on this chain; log it where it is not."""
        if self._box.is_mac(mac, _account_message(account), purpose=ACCOUNT_PURPOSE):
            return True
        log.error("ADDRESS NOT VERIFIED: an account's row was changed", account_id=account["account_id"])
        return False

    def check_account(self, account: Row, mac: bytes) -> None:
        """Refuse to show an account with an address that is not its own. Raises UnavailableError."""
        if not self.account_holds(account, mac):
            raise account_not_verified()


def account_not_verified() -> UnavailableError:
    """Return the refusal to show an address as an account's that is not proven to be."""
    return UnavailableError("ADDRESS_NOT_VERIFIED", "An address of this account cannot be verified. Do not pay to it.")


def _message(payment: Row) -> bytes:
    return msgspec.json.encode([payment[name] for name in BOUND])


def _account_message(account: Row) -> bytes:
    return msgspec.json.encode([account[name] for name in ACCOUNT_BOUND])
