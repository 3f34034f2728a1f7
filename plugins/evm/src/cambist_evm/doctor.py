"""Compares what is configured with the chain: tokens with contracts, the ceiling for fees with the market, traces."""

from __future__ import annotations

from collections.abc import Sequence

from cambist_chainkit.contracts import DECIMALS, SYMBOL, bytes_of, token_problem
from cambist_chainkit.gathering import gather_all

from .config import ChainSetup
from .endpoint import Endpoint
from .fees import in_gwei
from .gas import is_revert
from .market import read_market
from .tracing import offers_traces
from .wire import RpcFailure


async def token_problems(endpoint: Endpoint, setup: ChainSetup) -> Sequence[str]:
    """Return one sentence for each token whose contract is not what the registry says."""
    tokens = [token for token in setup.info.tokens if token.contract is not None]
    calls = [
        ("eth_call", ({"to": token.contract, "data": selector}, "latest"))
        for token in tokens
        for selector in ("0x" + DECIMALS, "0x" + SYMBOL)
    ]
    answers = [bytes_of((answer or "0x")[2:]) for answer in await endpoint.rpc.batch(calls, str)]
    found = []
    for token, decimals, symbol in zip(tokens, answers[::2], answers[1::2], strict=True):
        problem = token_problem(token, decimals, symbol, setup.symbols_onchain[token.contract or ""])
        if problem is not None:
            found.append(f"{setup.info.id}: {token.symbol} at {token.contract} {problem}")
    return found


async def token_answers(endpoint: Endpoint, contract: str) -> tuple[bytes, bytes]:
    """Return what a contract answers to ``decimals()`` and ``symbol()``, nothing where it refuses to."""
    calls = [("eth_call", ({"to": contract, "data": "0x" + selector}, "latest")) for selector in (DECIMALS, SYMBOL)]
    decimals, symbol = await endpoint.each(calls, str)
    return _bytes(endpoint, decimals), _bytes(endpoint, symbol)


def _bytes(endpoint: Endpoint, answer: str | RpcFailure | None) -> bytes:
    if isinstance(answer, RpcFailure) and not is_revert(answer):
        raise endpoint.rpc.error("eth_call", answer)
    return bytes_of(answer[2:]) if isinstance(answer, str) else b""


async def trace_problems(endpoints: Sequence[Endpoint], setup: ChainSetup) -> Sequence[str]:
    """Return a sentence where some endpoints offer traces and others do not, which nobody is told of otherwise."""
    offering = await gather_all(*map(offers_traces, endpoints))
    lacking = [endpoint.name for endpoint, offers in zip(endpoints, offering, strict=True) if not offers]
    if not lacking or not any(offering):
        return []
    when = "" if setup.config.quorum > 1 else "while those that do are away, "
    message = (
        f"{setup.info.id}: {' and '.join(lacking)} without traces, which other endpoints offer: {when}what contracts "
        'pay in the native coin is not seen; trace = "off" says that it need not be'
    )
    return [message]


async def fee_problems(endpoint: Endpoint, setup: ChainSetup) -> Sequence[str]:
    """Return a sentence where nothing could be sent now, because the chain asks for more than is allowed."""
    market = await read_market(endpoint, setup)
    if market.entry <= setup.fees.ceiling:
        return []
    asked, ceiling = in_gwei(market.entry), in_gwei(setup.fees.ceiling)
    return [f"{setup.info.id}: gas costs {asked} gwei now, and fee_ceiling_gwei is {ceiling}: nothing would be sent"]
