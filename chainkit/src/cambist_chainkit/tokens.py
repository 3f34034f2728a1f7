"""The tokens of a network: those known by themselves, and those of the operator's table beside or instead of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct

from cambist.plugin import ConfigError, Token

SYMBOL: Final = re.compile(r"[A-Za-z0-9.+-]{1,16}", re.ASCII)


class TokenConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[[...tokens]]``: a token beside the built-in ones; the same symbol replaces it."""

    symbol: str
    contract: str
    decimals: Annotated[int, Meta(ge=0, le=36)]
    label: str | None = None


class KnownToken(Struct, frozen=True, kw_only=True):
    """A token contract, and what it calls itself where that differs from the symbol it goes by here."""

    symbol: str
    contract: str
    decimals: int
    label: str
    symbols_onchain: tuple[str, ...] = ()

    @property
    def token(self) -> Token:
        """What the gateway knows of it."""
        return Token(symbol=self.symbol, contract=self.contract, decimals=self.decimals, label=self.label)

    @property
    def symbols(self) -> frozenset[str]:
        """What the contract may call itself."""
        return frozenset({self.symbol, *self.symbols_onchain})


def table_of(tokens: Iterable[Token]) -> tuple[TokenConfig, ...]:
    """Return how tokens stand in the operator's table. Raises ConfigError for a native coin, which stands in none."""
    rows = []
    for token in tokens:
        if token.contract is None:
            raise ConfigError(f"{token.symbol} is a native coin, and no token")
        rows.append(
            TokenConfig(symbol=token.symbol, contract=token.contract, decimals=token.decimals, label=token.label)
        )
    return tuple(rows)


def own_tokens(tokens: Iterable[Token], table: Iterable[TokenConfig]) -> tuple[Token, ...]:
    """Return those of a network's tokens that come from the operator's table."""
    symbols = {row.symbol.upper() for row in table}
    return tuple(token for token in tokens if token.contract is not None and token.symbol in symbols)


def merged_tokens(  # noqa: PLR0913 - what a network is, by keyword
    known: Iterable[KnownToken],
    own: Iterable[TokenConfig],
    *,
    native_symbol: str,
    normalized: Callable[[str], str | None],
    not_tokens: Mapping[str, str],
    where: str,
) -> Sequence[KnownToken]:
    """Return the network's tokens with the operator's. Raises ConfigError, naming the setting.

    ``normalized`` gives the one spelling of a contract, None for what is no address; ``not_tokens`` says what some
    normalized addresses are instead.
    """

    def own_token(token: TokenConfig) -> KnownToken:
        symbol = token.symbol.upper()
        if SYMBOL.fullmatch(symbol) is None or symbol == native_symbol:
            raise ConfigError(
                f"{where}.tokens: {token.symbol!r} is not 1 to 16 letters, digits, dots, dashes, or is the native coin"
            )
        contract = normalized(token.contract)
        if contract is None:
            raise ConfigError(f"{where}.tokens: the contract of {symbol} is no address, or its checksum is wrong")
        if contract in not_tokens:
            raise ConfigError(f"{where}.tokens: the contract of {symbol} is {not_tokens[contract]}")
        return KnownToken(symbol=symbol, contract=contract, decimals=token.decimals, label=token.label or symbol)

    chosen = {token.symbol: token for token in known}
    added = [own_token(token) for token in own]
    _refuse_twice((token.symbol for token in added), f"{where}.tokens: the symbol")
    chosen.update((token.symbol, token) for token in added)
    _refuse_twice((token.contract for token in chosen.values()), f"{where}.tokens: the contract")
    return list(chosen.values())


def _refuse_twice(values: Iterable[str], what: str) -> None:
    for value, count in Counter(values).items():
        if count > 1:
            raise ConfigError(f"{what} {value} is listed twice")
