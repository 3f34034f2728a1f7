"""Account keys, derived ahead so that merchants can register."""

from __future__ import annotations

import structlog

from cambist.bootstrap import Gateway
from cambist.services.addresses.account_keys import register_gas_stations, top_up_stock
from cambist.services.addresses.topped_up import is_topped_up

log = structlog.get_logger(__name__)


async def derive_account_keys(gateway: Gateway) -> bool:
    """Derive account keys up to ``keys.stock``, a bounded number at a time."""
    if gateway.signer is None:
        return False
    coin_types = {family.coin_type for family in gateway.registry.families.values()}
    source, stock = (gateway.signer, gateway.secrets), gateway.settings.keys.stock
    async with gateway.db.autocommit() as conn:
        if await is_topped_up(conn, *source, coin_types=coin_types, stock=stock):
            await register_gas_stations(conn, gateway.keys, gateway.registry.families.values())
            return False
    async with gateway.db.transaction() as conn:
        level = await top_up_stock(conn, *source, coin_types=coin_types, stock=stock)
    if level.complete:
        async with gateway.db.transaction() as conn:
            await register_gas_stations(conn, gateway.keys, gateway.registry.families.values())
    if level.added:
        log.info("account_keys_derived", added=level.added, free=level.free)
    return not level.complete
