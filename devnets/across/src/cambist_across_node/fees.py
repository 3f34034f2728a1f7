"""What a deposit costs: a share for the relayer's capital, one for the liquidity, and gas, the same for any amount."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from .side import WETH, Token

PPM: Final = 1_000_000
CAPITAL_PPM: Final = 100
LP_PPM: Final = 50
MIN_DEPOSIT_GAS: Final = 50
"""The least deposit, in fees for gas: of less, these would be more than 2 %."""
_PARTS_PER_WHOLE: Final = 10**18


class Fees(Struct, frozen=True, kw_only=True):
    """What is kept of a deposit, in units of the token that goes in."""

    capital: int
    gas: int
    lp: int

    @property
    def relay(self) -> int:
        """What the relayer keeps."""
        return self.capital + self.gas

    @property
    def total(self) -> int:
        return self.relay + self.lp


def fees(token: Token, units: int) -> Fees:
    """Return the fees for a deposit of so much."""
    return Fees(capital=units * CAPITAL_PPM // PPM, gas=gas_fee(token), lp=units * LP_PPM // PPM)


def gas_fee(token: Token) -> int:
    """Return what a fill's gas costs: 0.02 of a token, 0.00002 of ether."""
    return int(10**token.decimals) // (50_000 if token.symbol == WETH else 50)


def share(part: int, whole: int) -> str:
    """Return a part of a whole with 18 decimals, as the server writes it."""
    return str(part * _PARTS_PER_WHOLE // whole) if whole else "0"


def converted(units: int, taken: Token, given: Token) -> int:
    """Return as much of the other chain's token, rounded down."""
    return units * int(10**given.decimals) // int(10**taken.decimals)


def slow_units_out(taken: Token, given: Token, units: int) -> int:
    """Return what the SpokePool itself pays for a deposit: no relayer keeps anything of it."""
    return converted(units - fees(taken, units).lp, taken, given)
