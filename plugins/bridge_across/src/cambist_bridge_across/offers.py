"""Judges what Across's server offers, before anything is made of it."""

from __future__ import annotations

from typing import Final

from cambist.plugin import ExchangeRefusedError, ExchangeRequest, ProviderFee, ProviderUnavailableError, Units

from .addresses import ADDRESS, ZERO, same
from .api import WHO, Offer, Route
from .deployments import Deployment
from .reader import FILL_S_MAX, QUOTE_AGE_S_MAX, exclusive_until

QUOTE_MARGIN_S: Final = 300
"""What must be left of a quote's hour, for the deposit to be signed and mined."""

CLOCK_S_MAX: Final = 60
"""How far the server's clock may be before ours."""

FILL_S_MIN: Final = 300
"""What a fill must have. The gateway signs within half a minute, and cancels what no block takes within three more,
unless its operator says otherwise: hardly any deposit is made after its deadline, when it can only be paid back.
"""

FILL_ESTIMATE_S_MAX: Final = 86_400
_MILLION: Final = 1_000_000


def check(  # noqa: PLR0913 - they are one comparison
    offer: Offer, route: Route, request: ExchangeRequest, *, here: Deployment, there: Deployment, now: int, max_ppm: int
) -> None:
    """Raise ProviderUnavailableError for an offer that cannot be, ExchangeRefusedError for one that costs too much."""
    for problem, is_so in (
        ("a contract that is not the pinned one", not _of_contracts(offer, here, there)),
        ("other tokens than were asked for", not _of_tokens(offer, route, request)),
        ("times that the contract would refuse", not _in_time(offer, now)),
        ("exclusivity that leaves others no time", not _open_in_time(offer, now)),
    ):
        if is_so:
            raise ProviderUnavailableError(f"{WHO} offers {problem}")
    taken = request.units * 10**request.buys.token.decimals
    given = offer.units_out * 10**request.sells.token.decimals
    if not 0 < given <= taken:
        raise ProviderUnavailableError(f"{WHO} offers nothing, or more than goes in")
    if (taken - given) * _MILLION > taken * max_ppm:
        percent = f"{max_ppm // 10_000}.{max_ppm % 10_000:04}".rstrip("0").rstrip(".")
        # Gas is dear at times: what was quoted below that may be had again.
        raise ExchangeRefusedError(f"Across would keep more than {percent} % of it", reason="price_moved")


def fees(offer: Offer, request: ExchangeRequest) -> tuple[ProviderFee, ...]:
    """Return the fees by name, where they come to what is kept; else what is kept, as one."""
    decimals_in, decimals_out = request.sells.token.decimals, request.buys.token.decimals
    kept = request.units - offer.units_out * 10**decimals_in // 10**decimals_out
    rounded = 10 ** max(0, decimals_in - decimals_out) + len(offer.fees)
    told = [units for _, units in offer.fees]
    if min(told) < 0 or abs(sum(told) - kept) > rounded:
        return (ProviderFee(name="total", units=Units(max(0, kept))),)
    return tuple(ProviderFee(name=name, units=Units(units)) for name, units in offer.fees)


def fill_s(offer: Offer) -> int | None:
    """Return how long a fill is said to take, where that is believable."""
    return offer.fill_s if offer.fill_s is not None and offer.fill_s <= FILL_ESTIMATE_S_MAX else None


def is_account(address: str) -> bool:
    """Whether this can be whose money it is."""
    return ADDRESS.fullmatch(address) is not None and address != ZERO


def _of_contracts(offer: Offer, here: Deployment, there: Deployment) -> bool:
    claimed = offer.destination_spoke_pool
    return same(offer.spoke_pool, here.spoke_pool) and (claimed is None or same(claimed, there.spoke_pool))


def _of_tokens(offer: Offer, route: Route, request: ExchangeRequest) -> bool:
    sides = (
        (offer.input_side, route.origin, route.input_token, request.sells.token.decimals),
        (offer.output_side, route.destination, route.output_token, request.buys.token.decimals),
    )
    return all(
        (side.chain, side.decimals) == (chain, decimals) and same(side.contract, contract)
        for side, chain, contract, decimals in sides
    )


def _in_time(offer: Offer, now: int) -> bool:
    quoted_in_time = now - QUOTE_AGE_S_MAX + QUOTE_MARGIN_S <= offer.quoted_at <= now + CLOCK_S_MAX
    return quoted_in_time and now + FILL_S_MIN <= offer.fill_deadline <= now + FILL_S_MAX


def _open_in_time(offer: Offer, now: int) -> bool:
    """Whether at least half of the time until the deadline is everybody's."""
    if not offer.exclusivity:
        return True
    until = exclusive_until(offer.exclusivity, now)
    return offer.exclusive_relayer != ZERO and 2 * (until - now) <= offer.fill_deadline - now
