"""The chains and tokens that a request may name, and how any other one is refused."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from cambist.plugin import ChainInfo, Token

from .errors import FieldProblem, InvalidError


class Wording(Struct, frozen=True, kw_only=True):
    """What is said of the field that names no chain or token; ``{chain}`` stands for the chain's id.

    ``chain_message`` is the whole answer's, where that is not the sentence about the field.
    """

    chain: str = "is not supported"
    chain_message: str | None = None
    chain_code: str = "UNSUPPORTED_CHAIN"
    token: str = "is not supported on {chain}"  # noqa: S105  a token on a chain
    token_code: str = "UNSUPPORTED_TOKEN"  # noqa: S105  likewise


SPECIFIED = Wording(chain_message="Unsupported chain")
"""The specification's words."""


def find_chain(
    chains: Mapping[str, ChainInfo], chain_id: str, field: str = "chain", wording: Wording = SPECIFIED
) -> ChainInfo:
    """Return the chain. Raises InvalidError where there is none."""
    chain = chains.get(chain_id)
    if chain is None:
        message = wording.chain_message or f"{field} {wording.chain}"
        raise InvalidError(wording.chain_code, message, [FieldProblem(field, wording.chain)])
    return chain


def find_token(chain: ChainInfo, symbol: str, field: str = "token", wording: Wording = SPECIFIED) -> Token:
    """Return the chain's token of this symbol. Raises InvalidError where there is none."""
    token = chain.token(symbol)
    if token is None:
        raise InvalidError.field(field, wording.token.format(chain=chain.id), wording.token_code)
    return token
