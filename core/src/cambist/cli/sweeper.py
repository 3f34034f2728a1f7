"""``cambist sweeper``: how the contract comes into being that empties many deposit addresses at once."""

from __future__ import annotations

import asyncio

import click
from sqlalchemy.exc import SQLAlchemyError

from cambist.bootstrap import plugin_context
from cambist.plugin import SweeperDeployment, SweepingChain
from cambist.ports import SystemClock, system_random
from cambist.services.addresses.wallets import gas_station
from cambist.settings import Settings, SettingsError

from .opened import opened_database, opened_registry, reason
from .options import Invocation, settings_options
from .terminal import echo


@click.command()
@settings_options
@click.argument("chain_id", metavar="CHAIN")
def sweeper(invocation: Invocation, chain_id: str) -> None:
    """Show where the gas station's sweeper is on CHAIN, and what deploys it there. Sends nothing."""
    try:
        made, configured = asyncio.run(_find(invocation.settings(), chain_id))
    except (SQLAlchemyError, OSError) as error:
        raise SettingsError(f"The database cannot be read: {reason(error)}.") from error
    delegate = made.delegate or made.address
    echo(f"address: {made.address}")
    if configured == made.address:
        echo("It is the one that is configured. 'cambist doctor' tells whether it is deployed.")
        echo(f"Swept addresses delegate to {delegate}, as signer.delegates has to allow.")
        return
    echo("To deploy it, send this data to this address, without a value, from any wallet:")
    echo(f"to:      {made.to_address}")
    echo(f"data:    0x{made.data.hex()}")
    echo(f'Then set sweeper = "{made.address}" for the chain,')
    echo(f'and signer.delegates = {{ {chain_id} = ["{delegate}"] }}, to which swept addresses delegate.')


async def _find(settings: Settings, chain_id: str) -> tuple[SweeperDeployment, str | None]:
    async with opened_database(settings, "sweeper", "the gas station's address is in the database.") as database:
        context = plugin_context(SystemClock(), system_random())
        async with opened_registry(settings).connect_chains(context) as chains:
            chain = chains.get(chain_id)
            if not isinstance(chain, SweepingChain):
                raise SettingsError(f"{chain_id!r} is no live chain that can sweep.")
            async with database.transaction() as conn:
                station = await gas_station(conn, chain.info.family, "live")
            if station is None:
                raise SettingsError("There is no gas station yet: the worker makes its address known when it starts.")
            return chain.sweeper_deployment(station.address), chain.info.sweeper
