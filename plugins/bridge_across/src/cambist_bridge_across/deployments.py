"""Where Across's contracts are: pinned here by the number of the chain, and replaced by the operator's table alone."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cambist.plugin import ChainInfo

from .addresses import spell
from .config import AcrossConfig, ChainTable


class Deployment(Struct, frozen=True, kw_only=True):
    """Across on one chain: the contract that takes deposits and makes fills, and the token that it wraps coin into."""

    spoke_pool: str
    wrapped_native: str


ETHEREUM: Final = 1
OPTIMISM: Final = 10
BSC: Final = 56
POLYGON: Final = 137
BASE: Final = 8453
ARBITRUM: Final = 42161

PINNED: Final = {
    ETHEREUM: Deployment(
        spoke_pool="0x5c7BCd6E7De5423a257D81B442095A1a6ced35C5",
        wrapped_native="0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2",
    ),
    OPTIMISM: Deployment(
        spoke_pool="0x6f26Bf09B1C792e3228e5467807a900A503c0281",
        wrapped_native="0x4200000000000000000000000000000000000006",
    ),
    BSC: Deployment(
        spoke_pool="0x4e8E101924eDE233C13e2D8622DC8aED2872d505",
        wrapped_native="0xbb4CdB9CBd36B01bD1cBaEBF2De08d9173bc095c",
    ),
    POLYGON: Deployment(
        spoke_pool="0x9295ee1d8C5b022Be115A2AD3c30C72E34e7F096",
        wrapped_native="0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270",
    ),
    BASE: Deployment(
        spoke_pool="0x09aea4b2242abC8bb4BB78D537A67a245A7bEC64",
        wrapped_native="0x4200000000000000000000000000000000000006",
    ),
    ARBITRUM: Deployment(
        spoke_pool="0xe35e9842fceaCA96570B734083f4a58e8F7C5f2A",
        wrapped_native="0x82aF49447D8a07e3bd95BD0d56f35241523fBab1",
    ),
}


class Deployments:
    """The contracts of every chain, as pinned and as the operator's table has them."""

    def __init__(self, config: AcrossConfig) -> None:
        self._tables = config.chains

    def of(self, chain: ChainInfo) -> Deployment | None:
        """Return Across's contracts on a chain, or None where there are none."""
        if not chain.is_evm or chain.chain_id_num is None:
            return None
        pinned = PINNED.get(chain.chain_id_num)
        table = self._tables.get(chain.id, ChainTable())
        spoke_pool, wrapped_native = table.spoke_pool, table.wrapped_native
        if pinned is not None:
            spoke_pool, wrapped_native = spoke_pool or pinned.spoke_pool, wrapped_native or pinned.wrapped_native
        if spoke_pool is None or wrapped_native is None:
            return None
        return Deployment(spoke_pool=spell(spoke_pool), wrapped_native=spell(wrapped_native))
