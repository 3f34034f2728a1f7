"""``cambist reconcile``: what the chains say beside what the books say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import click
import msgspec
from sqlalchemy.exc import SQLAlchemyError

from cambist.bootstrap import plugin_context, secrets_box
from cambist.db.engine import Database
from cambist.plugin import Chain
from cambist.ports import SystemClock, system_ids, system_random
from cambist.registry import ChainConnections, Registry
from cambist.services.chains import setups
from cambist.services.recovery.reconcile import ChainReport, Impossible, as_text, compare_chain
from cambist.settings import Settings

from .opened import check_live, live_chains, opened_database, opened_registry, reason
from .options import Invocation, settings_options
from .terminal import echo

EXIT_DIFFERENCES = 1
EXIT_UNREADABLE = 2
CHAIN_TIMEOUT_S = 1800


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    agrees: bool
    chains: Sequence[ChainReport]
    problems: Sequence[str]


@click.command()
@settings_options
@click.option("--chain", "only", help="Compare this chain alone.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")
def reconcile(invocation: Invocation, only: str | None, *, as_json: bool) -> None:
    """Compare the ledger with the balances on every live chain, and print every difference.

    Exits with 0 when there is none, with 1 when there are some, and with 2 when a chain could not be read.
    """
    settings = invocation.settings()
    try:
        answer = asyncio.run(_compare(settings, only))
    except (SQLAlchemyError, OSError) as error:
        echo(f"cambist: The database cannot be read: {reason(error)}.", err=True)
        raise SystemExit(EXIT_UNREADABLE) from error
    if as_json:
        echo(msgspec.json.encode(answer))
    else:
        for report in answer.chains:
            for line in as_text(report):
                echo(line)
    for problem in answer.problems:
        echo(f"cambist: {problem}", err=True)
    if answer.problems:
        raise SystemExit(EXIT_UNREADABLE)
    if not answer.agrees:
        raise SystemExit(EXIT_DIFFERENCES)


async def _compare(settings: Settings, only: str | None) -> _Answer:
    why = "'cambist reconcile' reads the books of a gateway that runs."
    reports: list[ChainReport] = []
    problems: list[str] = []
    async with opened_database(settings, "reconcile", why) as database:
        registry = opened_registry(settings)
        live = live_chains(registry)
        if only is not None:
            check_live(registry, only)
        async with _connected(settings, registry, database) as chains:
            for chain_id in live if only is None else [only]:
                chain = chains.get(chain_id)
                if chain is None:
                    problems.append(f"{chain_id}: its plugin does not connect it")
                    continue
                try:
                    async with asyncio.timeout(CHAIN_TIMEOUT_S):
                        reports.append(await compare_chain(database, chain))
                except Impossible as error:
                    problems.append(str(error))
                except TimeoutError:
                    problems.append(f"{chain_id}: it did not answer within {CHAIN_TIMEOUT_S} s")
    agrees = not problems and not any(report.differences for report in reports)
    return _Answer(agrees=agrees, chains=reports, problems=problems)


@asynccontextmanager
async def _connected(settings: Settings, registry: Registry, database: Database) -> AsyncIterator[Mapping[str, Chain]]:
    """Connect the chains as the gateway has them: with the endpoints and tokens that were added."""
    context = plugin_context(SystemClock(), system_random())
    box = None if settings.keys.application_key is None else secrets_box(settings, system_ids())
    async with registry.connect_chains(context) as connected:
        connections = ChainConnections(registry, context, connected)
        try:
            async with database.autocommit() as conn:
                changes = await setups.load(conn)
            await setups.Setups(connections, registry, box).refresh(changes)
            yield connections.chains
        finally:
            await connections.aclose()
