"""What a transaction should offer for gas, given the present market and what the operator allows. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cambist.plugin import Fee, FeeAboveCeilingError, Units

GWEI: Final = 10**9


class FeeBounds(Struct, frozen=True, kw_only=True):
    """What the operator allows and the network's nodes insist on, in wei per gas."""

    ceiling: int
    tip_min: int
    tip_max: int


class Market(Struct, frozen=True, kw_only=True):
    """What gas costs now, in wei. Without a ``base_fee`` the chain knows only a price, which is the ``tip`` then.

    ``data_fee`` is an upper bound of what a rollup charges for the bytes of one transfer.
    """

    base_fee: int | None
    tip: int
    data_fee: int = 0

    @property
    def entry(self) -> int:
        """The price at which the next block takes a transaction."""
        return (self.base_fee or 0) + self.tip


def fee_now(market: Market, bounds: FeeBounds, chain: str, gas: int, *, parts: int = 1) -> Fee:
    """Return a fee that lasts while the base fee doubles, or up to the ceiling. Raises FeeAboveCeilingError.

    ``parts`` is for how many transfers' bytes a rollup charges.
    """
    if market.entry > bounds.ceiling:
        raise _above_ceiling(chain, market.entry, bounds)
    if market.base_fee is None:
        return Fee(limit=gas, price=market.tip, extra=Units(parts * market.data_fee))
    price, extra = _lasting(market, bounds), Units(parts * market.data_fee)
    return Fee(limit=gas, price=price, tip=market.tip, extra=extra, price_now=market.entry)


def outbidding(market: Market, bounds: FeeBounds, chain: str, old: Fee, *, parts: int = 1) -> Fee:
    """Return a fee for which nodes give up the old one, and fit for now. Raises FeeAboveCeilingError.

    Nodes want a tenth more, of the price and of the tip alike; an eighth leaves room for theirs to differ.
    """
    tip = None if old.tip is None else max(_raised(old.tip), market.tip)
    price = max(_raised(old.price), _lasting(market, bounds), market.entry, tip or 0)
    if price > bounds.ceiling:
        raise _above_ceiling(chain, price, bounds)
    return Fee(limit=old.limit, price=price, tip=tip, extra=Units(max(old.extra, parts * market.data_fee)))


def _raised(offer: int) -> int:
    return offer + max(-(-offer // 8), 1)


def _lasting(market: Market, bounds: FeeBounds) -> int:
    return min(2 * (market.base_fee or 0) + market.tip, bounds.ceiling)


def _above_ceiling(chain: str, price: int, bounds: FeeBounds) -> FeeAboveCeilingError:
    message = f"{chain} asks for {in_gwei(price)} gwei per gas, and fee_ceiling_gwei is {in_gwei(bounds.ceiling)}"
    return FeeAboveCeilingError(message)


def in_gwei(wei: int) -> str:
    """Return the number of gwei as a decimal string."""
    return f"{wei // GWEI}.{wei % GWEI:09d}".rstrip("0").rstrip(".")
