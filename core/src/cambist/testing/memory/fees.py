"""What sending costs on a chain in memory, as on a chain with a base price for each block and tips on top."""

from __future__ import annotations

from cambist.plugin import Fee, FeeAboveCeilingError, Token

from .blocks import Transaction

GWEI = 10**9
NATIVE_WORK = 21_000
TOKEN_WORK = 45_000
STAKING_WORK = 5_000
TOKEN_LIMIT = 60_000
"""A token's transfer is estimated with room to spare, so that what it costs is below what it may cost."""


class MemoryFees:
    """The prices of one chain; a test changes them as it likes.

    A block takes what pays at least ``base_price`` for each unit of work, and the sender pays base price and
    tip. Nodes refuse what pays less than ``price_min``, and keep waiting what pays more than that. ``price_max`` is
    the operator's ceiling. ``legacy`` chains know no tip: the whole price is paid.
    """

    def __init__(self, *, legacy: bool = False, price_max: int | None = None) -> None:
        self.base_price = 10 * GWEI
        self.tip = GWEI
        self.price_min = GWEI
        self.price_max = price_max
        self.legacy = legacy

    def limit(self, token: Token) -> int:
        """Return the work that a transfer is allowed."""
        return NATIVE_WORK if token.is_native else TOKEN_LIMIT

    def current(self, limit: int) -> Fee:
        """Return what is offered now: the base price may double before it is too little."""
        if self.legacy:
            return self.flat(limit)
        price, now = 2 * self.base_price + self.tip, self.base_price + self.tip
        return self._below_ceiling(Fee(limit=limit, price=price, tip=self.tip, price_now=now))

    @property
    def flat_price(self) -> int:
        """What every unit of work costs where transactions bid for nothing."""
        return self.base_price + self.tip

    def flat(self, limit: int) -> Fee:
        """Return what work costs where transactions bid for nothing."""
        return self._below_ceiling(Fee(limit=limit, price=self.flat_price))

    def outbidding(self, old: Fee, price_max: int = 0) -> Fee:
        """Return what replaces the old fee, and is fit for now: up to ``price_max``, or the ceiling if that is more."""
        now = Fee(limit=old.limit, price=self.flat_price, tip=self.tip) if price_max else self.current(old.limit)
        tip = None if old.tip is None else max(_bumped(old.tip), now.tip or now.price)
        price = max(_bumped(old.price), now.price, tip or 0)
        return self._below_ceiling(Fee(limit=old.limit, price=price, tip=tip, extra=old.extra), price_max)

    def replaces(self, new: Fee, old: Fee) -> bool:
        """Whether nodes let a transaction take the place of another."""
        return new.price >= _bumped(old.price) and _tip(new) >= _bumped(_tip(old))

    def price_paid(self, fee: Fee) -> int:
        """Return what a unit of work costs in a block of now."""
        return fee.price if fee.tip is None else min(fee.price, self.base_price + fee.tip)

    def _below_ceiling(self, fee: Fee, price_max: int = 0) -> Fee:
        if self.price_max is not None and fee.price > max(self.price_max, price_max):
            raise FeeAboveCeilingError(f"a price of {fee.price} is above the ceiling of {self.price_max}")
        return fee


def work_of(transaction: Transaction) -> int:
    """Return the work that a transaction takes to run."""
    if transaction.staking is not None:
        return STAKING_WORK
    return sum(NATIVE_WORK if output.contract is None else TOKEN_WORK for output in transaction.outputs)


def _tip(fee: Fee) -> int:
    return fee.price if fee.tip is None else fee.tip


def _bumped(price: int) -> int:
    # 12.5 % more, rounded up: the rule of the strictest nodes that are in use.
    return -(-price * 9 // 8)
