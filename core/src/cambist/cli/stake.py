"""``cambist stake``: what the gas station stakes, so that fees need not be burned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import click
from msgspec import structs

from cambist.db.engine import Database
from cambist.domain.money import format_units
from cambist.plugin import ChainInfo
from cambist.ports import SystemClock, system_ids
from cambist.services.audit.entries import Action, record
from cambist.services.listing import Part
from cambist.services.sending.gas import gas_stations, stakes
from cambist.services.sending.gas.stakes import StakeAction
from cambist.settings import Settings, SettingsError

from .opened import answer, opened_database, opened_registry, person
from .options import Invocation, settings_options

SHOWN_MAX = 10


@click.command()
@settings_options
@click.argument("chain_id", metavar="CHAIN")
@click.argument("action", type=click.Choice(["show", *stakes.KINDS]), metavar="ACTION")
@click.argument("amount", required=False, metavar="[AMOUNT]")
def stake(invocation: Invocation, chain_id: str, action: StakeAction | Literal["show"], amount: str | None) -> None:
    """Show the gas station's stake on CHAIN, or have the worker stake, unstake or withdraw AMOUNT of its own coin.

    To withdraw takes back all that has waited long enough, so it needs no AMOUNT.
    """
    if action == "show" and amount is not None:
        raise click.UsageError("show takes no AMOUNT.")
    answer(_answer(invocation.settings(), chain_id, action, amount))


async def _answer(
    settings: Settings, chain_id: str, action: StakeAction | Literal["show"], amount: str | None
) -> Sequence[str]:
    info = opened_registry(settings).chains.get(chain_id)
    if info is None:
        raise SettingsError(f"There is no chain {chain_id!r}.")
    why = "'cambist stake' asks the worker of a gateway that runs."
    async with opened_database(settings, "stake", why) as database:
        if action == "show":
            return await _shown(database, info)
        return [await _ask(database, info, action, amount)]


async def _ask(database: Database, info: ChainInfo, action: StakeAction, amount: str | None) -> str:
    units = stakes.read_amount(info, action, amount)
    async with database.transaction() as conn:
        made = await stakes.request_stake(conn, system_ids(), info, action, units, SystemClock().now())
        told = {"chain": info.id, "stake": action, "amount": amount or "all"}
        now = SystemClock().now()
        await record(conn, person(), Action.STAKE_ASKED, now, subject=made.resource, details=told, line=False)
    return f"{made.resource}: the worker sends it. 'cambist stake {info.id} show' tells how far it is."


async def _shown(database: Database, info: ChainInfo) -> Sequence[str]:
    async with database.transaction() as conn:
        found = [station for station in await gas_stations.list_stations(conn) if station.chain == info.id]
        requests = await stakes.list_stake_requests(conn, info.id, Part(limit=SHOWN_MAX))
    symbol, decimals = info.native.symbol, info.native.decimals

    def coins(units: int) -> str:
        return f"{format_units(units, decimals)} {symbol}"

    lines = []
    for station in found:
        lines.append(f"gas station {station.address}, seen {station.checked_at:%Y-%m-%d %H:%M:%S} UTC")
        lines.append(f"  balance       {coins(station.balance)}")
        if station.stake is None:
            lines.append("  Nothing can be staked on this chain.")
        else:
            held = structs.asdict(station.stake)
            free_at = held.pop("free_at")
            lines += [f"  {name:<13} {coins(units)}" for name, units in held.items()]
            if free_at is not None:
                lines.append(f"  {'free at':<13} {free_at:%Y-%m-%d %H:%M:%S} UTC")
    for one in requests.items:
        reason = f" ({one.reason})" if one.reason else ""
        lines.append(
            f"{one.created_at:%Y-%m-%d %H:%M} {one.action} {coins(one.units)}: {one.state}{reason} {one.tx_id or ''}"
        )
    return lines or ["The worker has not seen this chain's gas station yet."]
