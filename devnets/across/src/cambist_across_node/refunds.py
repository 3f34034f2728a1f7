"""Pays back what nobody filled in time, as Across's bundles do: a depositor gets one transfer of each token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .deposits import Deposit, FillStatus, from_word
from .side import Side


class NotExpiredError(RuntimeError):
    """A deposit was filled, was paid back, or can still be filled."""


class Refunds:
    """Pays deposits back, and knows which: a contract is told addresses and sums, not which deposits they are for."""

    def __init__(self, sides: Sequence[Side]) -> None:
        self._sides = sides
        self._paid: dict[bytes, str] = {}

    async def of(self, deposit: Deposit) -> str | None:
        """Return the transaction that paid a deposit back."""
        tx_id = self._paid.get(deposit.hash)
        return tx_id if tx_id is not None and await self._side(deposit.relay.origin).knows(tx_id) else None

    async def is_expired(self, deposit: Deposit) -> bool:
        """Whether nobody can fill a deposit any more."""
        return await self._side(deposit.destination).time() > deposit.relay.fill_deadline

    async def due(self, origin: Side) -> Sequence[Deposit]:
        """Return the deposits of a chain that were not filled in time and not paid back."""
        found = [
            one for one in await origin.deposits() if any(one.destination == each.chain_id for each in self._sides)
        ]
        return [
            one
            for one in found
            if await self.is_expired(one) and not await self._is_filled(one) and await self.of(one) is None
        ]

    async def pay(self, origin: Side, deposits: Sequence[Deposit] | None = None) -> Sequence[dict[str, Any]]:
        """Pay back these deposits, or all that are due, and return the receipts: one for each token.

        Raises NotExpiredError, before anything is paid.
        """
        due = await self.due(origin)
        deposits = due if deposits is None else deposits
        if any(one not in due for one in deposits):
            raise NotExpiredError("this is no deposit that is to be paid back")
        receipts = []
        for token in dict.fromkeys(one.relay.input_token for one in deposits):
            of_it = [one for one in deposits if one.relay.input_token == token]
            owed: dict[str, int] = {}
            for one in of_it:
                depositor = from_word(one.relay.depositor)
                owed[depositor] = owed.get(depositor, 0) + one.relay.input_amount
            receipt = await origin.pay(from_word(token), list(owed), list(owed.values()))
            self._paid |= {one.hash: receipt["transactionHash"] for one in of_it}
            receipts.append(receipt)
        return receipts

    async def _is_filled(self, deposit: Deposit) -> bool:
        return await self._side(deposit.destination).fill_statuses([deposit]) == [FillStatus.FILLED]

    def _side(self, chain_id: int) -> Side:
        return next(side for side in self._sides if side.chain_id == chain_id)
