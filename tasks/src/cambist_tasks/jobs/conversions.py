"""What merchants have converted by itself."""

from __future__ import annotations

from cambist.bootstrap import Gateway, exchange_context
from cambist.services.payouts import auto_convert


async def convert_coins(gateway: Gateway) -> bool:
    """Start exchanges of what is available of coins whose rule says so, a few of them; there may be more."""
    done = await auto_convert.run(gateway.db, exchange_context(gateway), gateway.hints)
    return done.looked_at == auto_convert.COINS_MAX
