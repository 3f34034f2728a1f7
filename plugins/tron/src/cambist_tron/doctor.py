"""Compares what is configured with the network: keys, tokens, prices, and what the node keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cambist.plugin import ChainError
from cambist_chainkit.answers import UnsupportedError
from cambist_chainkit.contracts import DECIMALS, SYMBOL, bytes_of, token_problem
from cambist_chainkit.gathering import gather_all

from .addresses import ZERO_ADDRESS, hex_of
from .config import ChainSetup, on_trongrid
from .endpoint import Endpoint
from .fees import dear_energy, read_prices
from .replies import ConstantCall
from .simulation import check_ran

BLOCKS_CHECKED: Final = 10
RUNS_MIN: Final = 200
"""So many runs of contracts without a single internal transaction are not seen on a network in use."""

_NOBODY: Final = hex_of(ZERO_ADDRESS)


def key_problems(setup: ChainSetup) -> Sequence[str]:
    """Return a sentence for each endpoint of TronGrid that has no key."""
    return [
        f"{setup.info.id}: endpoint {position} is TronGrid's and has no key in api_keys: it will often refuse us"
        for position, (url, key) in enumerate(zip(setup.rpc_urls, setup.api_keys, strict=True), start=1)
        if on_trongrid(url) and key is None
    ]


async def token_problems(endpoint: Endpoint, setup: ChainSetup) -> Sequence[str]:
    """Return a sentence for each token whose contract is not what the registry says."""
    found = []
    for token in setup.info.tokens:
        if token.contract is None:
            continue
        decimals, symbol = await gather_all(
            _told(endpoint, token.contract, DECIMALS), _told(endpoint, token.contract, SYMBOL)
        )
        problem = token_problem(token, decimals, symbol, setup.symbols_onchain[token.contract])
        if problem is not None:
            found.append(f"{setup.info.id}: {token.symbol} at {token.contract} {problem}")
    return found


async def _told(endpoint: Endpoint, contract: str, selector: str, *, state: str = "wallet") -> bytes:
    body = {"owner_address": _NOBODY, "contract_address": hex_of(contract), "data": selector}
    answer = await endpoint.post(f"{state}/triggerconstantcontract", body, ConstantCall)
    check_ran(endpoint, answer)
    return bytes_of(answer.output) if answer.succeeded else b""


async def token_answers(endpoint: Endpoint, contract: str) -> tuple[bytes, bytes]:
    """Return what a contract answers to ``decimals()`` and ``symbol()``, nothing where it refuses to."""
    return await _told(endpoint, contract, DECIMALS), await _told(endpoint, contract, SYMBOL)


async def price_problems(endpoint: Endpoint, setup: ChainSetup) -> Sequence[str]:
    """Return a sentence where no token could be sent now, because energy costs more than is allowed."""
    told = dear_energy(await read_prices(endpoint), setup)
    return [] if told is None else [f"{told}: no token would be sent"]


async def solid_problems(endpoint: Endpoint, setup: ChainSetup) -> Sequence[str]:
    """Return a sentence where the node does not tell what is solid: java-tron does so at a port of its own.

    Deposits come in without it. Every payload names a solid block, and tokens are tried there, so nothing leaves.
    """
    contract = next((token.contract for token in setup.info.tokens if token.contract is not None), None)
    try:
        await endpoint.latest("walletsolidity")
        if contract is not None:
            await _told(endpoint, contract, DECIMALS, state="walletsolidity")
    except UnsupportedError as error:
        message = (
            f"{setup.info.id}: {error}: nothing that needs it is sent. Nodes of java-tron answer walletsolidity/ at "
            "another port, 8091: put both behind one address"
        )
        return [message]
    return []


async def internal_problems(endpoint: Endpoint, setup: ChainSetup) -> Sequence[str]:
    """Return a sentence where the node seems not to keep what contracts send: it does so only if told to.

    Nodes do not say how they are set up, so it shows in the newest blocks, where enough happens in them.
    """
    if not setup.config.internal_transfers:
        return []
    head = (await endpoint.newest()).height
    runs = 0
    for height in range(max(head - BLOCKS_CHECKED, 1), head):
        infos = await endpoint.infos(height)
        if any(info.internal for info in infos):
            return []
        runs += sum(bool(info.receipt.result) for info in infos)
    if runs < RUNS_MIN:
        return []
    message = (
        f"{setup.info.id}: {endpoint.name} keeps no internal transactions (vm.saveInternalTx), so that TRX which "
        "contracts send is not seen; internal_transfers = false says that this is known"
    )
    return [message]


async def problems(endpoints: Sequence[Endpoint], setup: ChainSetup) -> list[str]:
    """Return what is wrong: keys, what one endpoint tells of tokens and prices, and what each of them keeps."""
    found = list(key_problems(setup))
    checks = [
        *((check, endpoint) for endpoint in endpoints[:1] for check in (token_problems, price_problems)),
        *((check, endpoint) for endpoint in endpoints for check in (solid_problems, internal_problems)),
    ]
    for check, endpoint in checks:
        try:
            found += await check(endpoint, setup)
        except ChainError as error:
            found.append(str(error))
    return found
