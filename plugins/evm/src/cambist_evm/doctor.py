"""Compares what is configured with the chain: tokens with their contracts, the ceiling for fees with the market."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cambist.plugin import Token

from .config import ChainSetup
from .endpoint import TEXT, Endpoint
from .fees import in_gwei
from .market import read_market

_DECIMALS: Final = "0x313ce567"
_SYMBOL: Final = "0x95d89b41"
_WORD: Final = 32
_SHOWN_MAX: Final = 32


async def token_problems(endpoint: Endpoint, setup: ChainSetup) -> Sequence[str]:
    """Return one sentence for each token whose contract is not what the registry says."""
    tokens = [token for token in setup.info.tokens if token.contract is not None]
    calls = [
        ("eth_call", ({"to": token.contract, "data": selector}, "latest"))
        for token in tokens
        for selector in (_DECIMALS, _SYMBOL)
    ]
    answers = await endpoint.rpc.batch(calls, TEXT)
    found = []
    for token, decimals, symbol in zip(tokens, answers[::2], answers[1::2], strict=True):
        problem = _problem(token, _bytes(decimals), _bytes(symbol), setup.symbols_onchain[token.contract or ""])
        if problem is not None:
            found.append(f"{setup.info.id}: {token.symbol} at {token.contract} {problem}")
    return found


async def fee_problems(endpoint: Endpoint, setup: ChainSetup) -> Sequence[str]:
    """Return a sentence where nothing could be sent now, because the chain asks for more than is allowed."""
    market = await read_market(endpoint, setup)
    if market.entry <= setup.fees.ceiling:
        return []
    asked, ceiling = in_gwei(market.entry), in_gwei(setup.fees.ceiling)
    return [f"{setup.info.id}: gas costs {asked} gwei now, and fee_ceiling_gwei is {ceiling}: nothing would be sent"]


def _problem(token: Token, decimals: bytes, symbol: bytes, symbols: frozenset[str]) -> str | None:
    if len(decimals) < _WORD:
        return "is no token contract: it does not tell its decimals"
    said = int.from_bytes(decimals[:_WORD], "big")
    if said != token.decimals:
        return f"has {said} decimals, and is registered with {token.decimals}: every amount would be wrong"
    name = read_text(symbol)
    if name not in symbols:
        return f"calls itself {name[:_SHOWN_MAX]!r}: make sure that it is the right contract"
    return None


def read_text(raw: bytes) -> str:
    """Return the text that a contract answered: an ABI string, or 32 bytes as old tokens do it."""
    if len(raw) == _WORD:
        return raw.rstrip(b"\0").decode("utf-8", "replace")
    length = int.from_bytes(raw[_WORD : 2 * _WORD], "big") if len(raw) >= 2 * _WORD else 0
    return raw[2 * _WORD : 2 * _WORD + min(length, 256)].decode("utf-8", "replace")


def _bytes(answer: str | None) -> bytes:
    try:
        return bytes.fromhex((answer or "0x")[2:])
    except ValueError:
        return b""
