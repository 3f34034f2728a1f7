"""``cambist demo``: a month of a shop and the story of one payment, on a gateway of its own, to be visited.

Nothing leaves the machine. The month is made once for a folder, the story is played at every start.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import click

from cambist.embedded.processes import free_port
from cambist.ports import system_ids

from .demo_live import LiveDay, fill_station
from .demo_node import CHAIN, NodeFailedError, local_node, settings
from .demo_shop import PASSWORD, DemoFailedError, Shop, WebhookReceiver
from .supervisor import PROGRAM
from .terminal import echo

MARK = "# What `cambist demo` runs on"
"""How the settings in a folder of the demo's begin."""
SETTINGS = f"""\
{MARK}: simulated chains, one fixed price a token, and webhooks to this machine.

[webhooks]
allow_private_targets = true

# Or the month would lose its first days from the first day on.
[retention]
webhooks_days = 365
trackers_days = 365

[plugins.evm.chains.ethereum]
simulated = true

[plugins.evm.chains.base]
simulated = true

[plugins.tron]
simulated = true

[plugins.prices.static]
ETH = {{ usd = "2500", eur = "2300" }}
USDC = {{ usd = "1", eur = "0.92" }}
TRX = {{ usd = "0.30", eur = "0.276" }}
USDT = {{ usd = "1", eur = "0.92" }}
"""

START_S_MAX, STOP_S_MAX = 180, 30
PORT = 8080
CONFIG, LOG = "cambist.toml", "gateway.log"
MONTH, MONTH_LOG = "month.json", "month.log"
SIMULATED = "/overview?mode=sandbox"
"""Where there is something for an operator to see who has no live project yet."""
LIVE = "live.json"
"""There once everything has happened in the live project."""


@click.command()
@click.option("--once", is_flag=True, help="Play the story and end: 0 if every step held, 1 with what failed.")
@click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=False), default=Path(".cambist/demo"), show_default=True,
    help="Where the demo keeps its servers.",
)  # fmt: skip
@click.option("--port", type=click.IntRange(1, 65535), help=f"The port to listen on [default: {PORT}, or a free one].")
@click.option(
    "--anvil", type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A local Ethereum node: with it the shop has a live project too [default: the one on PATH, if any].",
)  # fmt: skip
def demo(*, once: bool, data_dir: Path, port: int | None, anvil: Path | None) -> None:
    """Show a month of a shop, and a payment from order to wallet, on this machine and nowhere else."""
    try:
        asyncio.run(_demo(data_dir, port or _port(), anvil or _anvil(), once=once))
    except (DemoFailedError, NodeFailedError) as error:
        click.secho(f"\nThe demo failed: {error}", fg="red", err=True)
        sys.exit(1)
    except OSError as error:
        if error.filename is None:
            raise
        click.secho(f"\nThe demo failed: {error.filename}: {error.strerror}", fg="red", err=True)
        sys.exit(1)


async def _demo(data_dir: Path, port: int, anvil: Path | None, *, once: bool) -> None:
    asked = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    stop = asyncio.create_task(asked.wait())
    await asyncio.to_thread(_prepare, data_dir)
    _check_free(port)
    async with local_node(anvil, data_dir) as node:
        if node is not None:
            (data_dir / CONFIG).write_text(SETTINGS + settings(node))
        month = await _month(data_dir, port, stop)
        if month is None:
            _told_to_stop(once=once)
            return
        station = month.get("station")
        if node is not None and station is not None and not (data_dir / LIVE).exists():
            await fill_station(node, station)
        await _visit(data_dir, port, node, month, stop, once=once)
    echo("Stopped. What was made stays in the demo's folder for the next time.")


async def _visit(  # noqa: PLR0913  each by name
    data_dir: Path, port: int, node: str | None, month: Mapping[str, Any], stop: asyncio.Future[Any], *, once: bool
) -> None:
    """Run the gateway, play what is played, and wait for whoever visits to end it. Raises DemoFailedError."""
    echo("Starting PostgreSQL, Valkey and the gateway …")
    admin_key = system_ids().hex_secret()
    async with (
        _running(data_dir, port, admin_key) as (url, ended),
        WebhookReceiver() as receiver,
        _receiving(WebhookReceiver(month["port"], month["secrets"])),
    ):
        day = None if node is None or (data_dir / LIVE).exists() else _live_day(url, node, month, admin_key)
        shop = Shop(url, receiver, system_ids().new("demo")[:12])
        play = asyncio.create_task(_play(day, data_dir / LIVE, shop))
        await _first(play, stop, ended)
        if stop.done():
            play.cancel()
            _told_to_stop(once=once)
            return
        if ended.done():
            raise DemoFailedError(f"the gateway ended by itself; its log is {data_dir / LOG}")
        visit = play.result()
        if once:
            if node is not None:
                await LiveDay(url, node, key="", admin_key=admin_key).rest()
            click.secho("\nEvery step held.", fg="green")
            return
        echo(_month_told(url, month))
        echo(visit)
        await _first(stop, ended)


def _live_day(url: str, node: str, month: Mapping[str, Any], admin_key: str) -> LiveDay | None:
    """Return what is to happen in the live project; None in a folder whose month was made without a chain for it."""
    # A folder of an earlier version has none.
    key = month.get("live_key")
    return None if key is None else LiveDay(url, node, key=key, admin_key=admin_key)


async def _play(day: LiveDay | None, happened: Path, shop: Shop) -> str:
    """Have the live project's day happen, and write that down; tell the story, and return what a visitor needs."""
    if day is not None:
        echo("Having customers pay on a local chain, once …")
        await day.happen()
        await asyncio.to_thread(happened.write_text, json.dumps({"chain": CHAIN}))
    return await shop.story()


async def _first(*futures: asyncio.Future[Any]) -> None:
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


async def _month(data_dir: Path, port: int, stop: asyncio.Future[Any]) -> dict[str, Any] | None:
    """Return what there is to know of the shop that has had a month, which is made now where there is none.

    None where somebody asks to stop before it is made. Raises DemoFailedError.
    """
    config, told, log = data_dir / CONFIG, data_dir / MONTH, data_dir / MONTH_LOG
    if not told.exists():
        echo("Making a month of a shop to look at, once; it takes about a minute …")
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "cambist.cli.demo_month", "--config", str(config), "--data-dir", str(data_dir),
                str(told), stderr=errors, env=_environ() | {"CAMBIST_WEB__PORT": str(port)}, start_new_session=True,
            )  # fmt: skip
        ended = asyncio.ensure_future(process.wait())
        await _first(stop, ended)
        if not ended.done():
            await _end(process, ended)
            return None
        if ended.result() != 0:
            raise DemoFailedError("the month could not be made:\n  " + await _end_of(log))
    return _told_before(told)


def _told_before(told: Path) -> dict[str, Any]:
    """Return what a month wrote down. Raises DemoFailedError for a file that was cut off, as by a power cut."""
    try:
        found = json.loads(told.read_text())
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found.keys() >= {"email", "operator", "port", "secrets"}:
        raise DemoFailedError(f"{told} is not whole: remove it, and a month is made anew")
    return found


@asynccontextmanager
async def _receiving(receiver: WebhookReceiver) -> AsyncIterator[None]:
    """Take the shop's webhooks where it has had them sent to, unless somebody else has the port by now."""
    try:
        await receiver.__aenter__()
    except OSError:
        echo(f"Port {receiver.port} is somebody else's: nobody here takes what the shop of the month is told.")
        yield
        return
    try:
        yield
    finally:
        await receiver.__aexit__()


def _month_told(url: str, month: Mapping[str, Any]) -> str:
    return "\n".join(
        [
            "\nA shop that has had a month",
            f"   dashboard  {url}/dashboard",
            f"   login      {month['email']} / {PASSWORD}",
            f"   operator   {url}/operator{'' if month.get('live_key') else SIMULATED}",
            f"   login      {month['operator']} / {PASSWORD}; an authenticator is set up first",
        ]
    )


@asynccontextmanager
async def _running(data_dir: Path, port: int, admin_key: str) -> AsyncIterator[tuple[str, asyncio.Future[int]]]:
    """Run ``cambist up`` with the demo's settings; yield its address, and what is done when it ends."""
    config, log = data_dir / CONFIG, (data_dir / LOG).open("wb")
    argv = [*PROGRAM, "up", "--config", str(config), "--data-dir", str(data_dir)]
    with log:
        process = await asyncio.create_subprocess_exec(
            *argv, "--host", "127.0.0.1", "--port", str(port), stdout=asyncio.subprocess.PIPE, stderr=log,
            env=_environ() | {"CAMBIST_AUTH__ADMIN_KEY": admin_key}, start_new_session=True,
        )  # fmt: skip
    ended = asyncio.ensure_future(process.wait())
    try:
        yield await _ready(process, data_dir / LOG), ended
    finally:
        await _end(process, ended)


async def _end(process: asyncio.subprocess.Process, ended: asyncio.Future[int]) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(asyncio.shield(ended), STOP_S_MAX)
    except TimeoutError:
        process.kill()


def _told_to_stop(*, once: bool) -> None:
    if once:
        raise DemoFailedError("it was told to stop before every step was played")


def _prepare(data_dir: Path) -> None:
    """Write the demo's settings into its folder. Raises DemoFailedError for one that has something else in it.

    The demo makes operators whose password everybody knows: no gateway that was there before may get them.
    """
    config = data_dir / CONFIG
    data_dir.mkdir(parents=True, exist_ok=True)
    is_own = config.is_file() and config.read_text(errors="replace").startswith(MARK)
    if not is_own and any(data_dir.iterdir()):
        raise DemoFailedError(f"{data_dir} has something in it that is not the demo's: name another folder")
    config.write_text(SETTINGS)


async def _ready(process: asyncio.subprocess.Process, log: Path) -> str:
    if process.stdout is None:
        raise AssertionError("its output is read")
    try:
        async with asyncio.timeout(START_S_MAX):
            async for line in process.stdout:
                if line.startswith(b"ready "):
                    return line.split()[1].decode()
    except TimeoutError:
        raise DemoFailedError(f"the gateway was not ready in {START_S_MAX} s; its log is {log}") from None
    raise DemoFailedError("the gateway did not start:\n  " + await _end_of(log))


async def _end_of(log: Path) -> str:
    return "\n  ".join((await asyncio.to_thread(log.read_text, errors="replace")).strip().splitlines()[-5:])


def _environ() -> dict[str, str]:
    """Leave out what belongs to a gateway that is configured around the demo: it must not touch that one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CAMBIST_")}


def _anvil() -> Path | None:
    found = shutil.which("anvil")
    return None if found is None else Path(found)


def _port() -> int:
    """Return the usual port, or a free one where it is taken."""
    try:
        _check_free(PORT)
    except DemoFailedError:
        return free_port()
    return PORT


def _check_free(port: int) -> None:
    """Raise DemoFailedError where a port is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise DemoFailedError(f"port {port} cannot be listened on: {error.strerror}") from None
