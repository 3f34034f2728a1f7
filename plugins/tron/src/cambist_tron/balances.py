"""What addresses hold: now, or as the blocks up to a final one have made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from cambist.plugin import InconsistentChainError, StateUnavailableError, Token, Units
from cambist_chainkit.gathering import gather_all

from .addresses import hex_of, raw_of
from .endpoint import Endpoint
from .protobuf import NUMBER_MAX
from .replies import Account
from .simulation import balance_of

BLOCKS_BETWEEN_MAX: Final = 40
"""Two minutes of blocks are looked through for what they change."""


async def balances_at(endpoint: Endpoint, wanted: Sequence[tuple[str, Token]], at: int | None) -> list[Units]:
    """Return balances, in the order asked for, all as of one height where one is named.

    Nodes keep two states: the newest, which holds what waits at that node, too; and that of the newest solid block.
    The second goes on every three seconds, so it is used for an earlier height only where no block since then says
    anything about any of the addresses. Raises StateUnavailableError.
    """
    if at is None:
        return await _read(endpoint, wanted, "wallet")
    solid = await _solid_height(endpoint)
    if at > solid:
        raise StateUnavailableError(f"{endpoint.name} tells balances up to block {solid}, and not of {at}")
    balances = await _read(endpoint, wanted, "walletsolidity")
    await _check_untouched(endpoint, {address for address, _ in wanted}, at, await _solid_height(endpoint))
    return balances


async def _solid_height(endpoint: Endpoint) -> int:
    return (await endpoint.newest()).finalized_height or 0


async def _read(endpoint: Endpoint, wanted: Sequence[tuple[str, Token]], state: str) -> list[Units]:
    async def read(held: tuple[str, Token]) -> Units:
        address, token = held
        if token.contract is not None:
            return Units(await balance_of(endpoint, address, token.contract, state=state))
        account = await endpoint.post(f"{state}/getaccount", {"address": hex_of(address)}, Account)
        if not 0 <= account.balance <= NUMBER_MAX:
            raise InconsistentChainError(f"{endpoint.name} tells a balance that cannot be")
        return Units(account.balance)

    distinct = list(dict.fromkeys(wanted))
    found = dict(zip(distinct, await endpoint.each(read, distinct), strict=True))
    return [found[one] for one in wanted]


async def _check_untouched(endpoint: Endpoint, addresses: set[str], at: int, solid: int) -> None:
    """Raise StateUnavailableError where a block behind ``at`` says anything about one of the addresses."""
    if solid - at > BLOCKS_BETWEEN_MAX:
        raise StateUnavailableError(f"{endpoint.name} tells balances of block {solid}, and not of {at} any more")
    names = [raw_of(address).hex().encode("ascii") for address in addresses]
    for height in range(at + 1, solid + 1):
        told = await gather_all(
            endpoint.post("wallet/getblockbynum", {"num": height}, msgspec.Raw),
            endpoint.post("wallet/gettransactioninfobyblocknum", {"num": height}, msgspec.Raw),
        )
        if any(name in bytes(text) for text in told for name in names):
            raise StateUnavailableError(f"{endpoint.name} tells balances of block {solid}, which changed since {at}")
