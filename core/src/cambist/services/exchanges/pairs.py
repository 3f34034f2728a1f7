"""What a token can be exchanged for, without asking any provider."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from cambist.domain.exchanges import Kind
from cambist.plugin import ChainToken, Units
from cambist.services.errors import ServiceError
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.quotes import Asset

from .context import ExchangeContext
from .create import check_open
from .offers import comes_back, supporting
from .owner import Owner
from .requests import Wish, check_pair


class Pair(Struct, frozen=True, kw_only=True, rename="camel"):
    """A token that another one can be exchanged for."""

    kind: Kind
    dest_chain: str
    dest_token: str


def list_pairs(context: ExchangeContext, settings: PlatformSettings, owner: Owner, source: Asset) -> Iterator[Pair]:
    """Yield each token that some provider may be asked for, chain by chain. A quote may be refused all the same."""
    for chain in context.registry.chains.values():
        for token in chain.tokens:
            wish = Wish(source=source, units=Units(1), dest=Asset(chain, token))
            if _is_offered(context, settings, owner, wish):
                yield Pair(kind=wish.kind, dest_chain=chain.id, dest_token=token.symbol)


def _is_offered(context: ExchangeContext, settings: PlatformSettings, owner: Owner, wish: Wish) -> bool:
    try:
        check_pair(wish.source, wish.dest)
        check_open(context, settings, owner, wish)
    except ServiceError:
        return False
    sells, buys = (ChainToken(chain=one.chain, token=one.token) for one in (wish.source, wish.dest))
    return any(comes_back(one, sells) for one in supporting(context, settings, wish.kind, owner.mode, sells, buys))
