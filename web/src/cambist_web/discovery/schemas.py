"""Answers about what can be paid with."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cambist.plugin import ChainInfo, Token
from cambist_web.schemas import Answer


class ChainView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A chain."""

    chain: str
    name: str
    native_symbol: str
    chain_id_num: int | None
    is_evm: bool
    default_confirmations: int


class TokenView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A token. `contractAddress` is null for a chain's own coin."""

    chain: str
    symbol: str
    contract_address: str | None
    decimals: int
    is_native: bool
    label: str


class ChainList(Answer, frozen=True, kw_only=True):
    """Every chain."""

    chains: Sequence[ChainView]


class TokenList(Answer, frozen=True, kw_only=True):
    """Tokens, each chain's own coin first."""

    tokens: Sequence[TokenView]


def chain_view(chain: ChainInfo) -> ChainView:
    return ChainView(
        chain=chain.id,
        name=chain.name,
        native_symbol=chain.native.symbol,
        chain_id_num=chain.chain_id_num if chain.is_evm else None,
        is_evm=chain.is_evm,
        default_confirmations=chain.confirmations,
    )


def token_view(chain: ChainInfo, token: Token) -> TokenView:
    return TokenView(
        chain=chain.id,
        symbol=token.symbol,
        contract_address=token.contract,
        decimals=token.decimals,
        is_native=token.is_native,
        label=token.label,
    )
