"""The composition root: everything a process needs, made once and handed on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from decimal import Decimal
from random import Random
from typing import Any, Literal, TypeAlias

import structlog
from msgspec import Struct
from redis.asyncio import Redis

from . import __version__
from .budgets import SharedBudgets
from .db.engine import Database, connect
from .db.vanished import tcp_options
from .domain.prices import RatePolicy
from .hints import Hints
from .plugin import BridgeProvider, Chain, OwnBudgets, PluginContext, RequestBudgets, SwapProvider
from .ports import Clock, Ids, SystemClock, system_ids, system_random
from .registry import ChainConnections, Registry
from .secrets import SecretsBox
from .services.addresses.account_keys import AccountKeys, IndexLeaser
from .services.chain_pauses import ChainPauses
from .services.chains.rules import TokenRules
from .services.exchanges.context import ExchangeContext
from .services.pricing.prices import RateBook, RateBookLimits
from .services.pricing.set_aside import SetAsideSources
from .settings import Settings, SettingsError
from .signer import Signer
from .signer.keystore import Keystore

Role: TypeAlias = Literal["web", "worker"]

WORKER_KEEPS = 3
"""Connections that a worker keeps open while it needs fewer: each takes 10 to 13 megabytes of the server's memory."""
REDIS_TIMEOUT_S = 5

log = structlog.get_logger(__name__)


class Gateway(Struct, frozen=True, kw_only=True):
    """One process's parts. ``chains`` and ``signer`` are the worker's alone: empty and None in web.

    ``swaps`` and ``bridges`` are open in both: web asks them for quotes, and the worker for calls.
    """

    role: Role
    settings: Settings
    clock: Clock
    ids: Ids
    db: Database
    redis: Redis
    hints: Hints
    registry: Registry
    chains: Mapping[str, Chain]
    connections: ChainConnections
    pauses: ChainPauses
    token_rules: TokenRules
    rates: RateBook
    swaps: tuple[SwapProvider, ...]
    bridges: tuple[BridgeProvider, ...]
    secrets: SecretsBox
    jwt_secret: str
    keys: AccountKeys
    leaser: IndexLeaser
    signer: Signer | None

    def __repr__(self) -> str:
        """Show no parts: some are secret."""
        return f"<Gateway {self.role}>"


class Parts(Struct, frozen=True, kw_only=True):
    """What tests put in the place of the real thing. None stands for the real thing."""

    clock: Clock | None = None
    ids: Ids | None = None
    random: Random | None = None
    registry: Registry | None = None
    keystore: Keystore | None = None
    db: Database | None = None
    """Stays its owner's to close."""


@asynccontextmanager
async def open_gateway(settings: Settings, *, role: Role, parts: Parts | None = None) -> AsyncIterator[Gateway]:
    """Open everything, and close it in reverse order.

    Servers need not be reachable yet. Raises SettingsError, RegistryError and KeystoreError for what no waiting
    would mend, and SignerUnavailableError for a signer's store that is locked or on a full disk.
    """
    parts = parts or Parts()
    if settings.database.url is None or settings.redis.url is None:
        raise SettingsError("database.url and redis.url must be set; only 'up' and 'demo' start servers of their own.")
    clock, ids, random = parts.clock or SystemClock(), parts.ids or system_ids(), parts.random or system_random()
    box, jwt_secret = secrets_box(settings, ids), settings.auth.jwt_secret
    if jwt_secret is None:
        raise SettingsError("auth.jwt_secret must be set.")
    registry = parts.registry or Registry(settings.plugins)
    async with AsyncExitStack() as stack:
        signer = None
        if role == "worker":
            from .signer.startup import open_signer  # noqa: PLC0415  web has no signer

            signer = await stack.enter_async_context(open_signer(settings, registry, clock, parts.keystore))
        db = parts.db
        if db is None:
            db = open_database(settings, role)
            stack.push_async_callback(db.close)
        redis = open_redis(settings.redis.url)
        stack.push_async_callback(redis.aclose)
        listening = open_listening(settings.redis.url)
        stack.push_async_callback(listening.aclose)
        context = plugin_context(clock, random, SharedBudgets(redis, clock))
        hints = Hints(listening)
        stack.push_async_callback(hints.aclose)
        connected, ended = dict[str, Chain](), set[str]()
        if role == "worker":
            connected |= await stack.enter_async_context(registry.connect_chains(context, ended=ended.add))
        connections = ChainConnections(registry, context, connected, ended)
        stack.push_async_callback(connections.aclose)
        sources = await stack.enter_async_context(registry.connect_prices(context))
        swaps = await stack.enter_async_context(registry.connect_swaps(context))
        bridges = await stack.enter_async_context(registry.connect_bridges(context))
        prices, keys = settings.prices, AccountKeys(box)
        policy = RatePolicy(
            max_age_s=prices.max_age_s,
            min_sources=prices.min_sources,
            deviation_max=Decimal(prices.deviation_max_percent) / 100,
        )
        limits = RateBookLimits(ttl_s=prices.ttl_s, timeout_ms=prices.timeout_ms)
        yield Gateway(
            role=role,
            settings=settings,
            clock=clock,
            ids=ids,
            db=db,
            redis=redis,
            hints=hints,
            registry=registry,
            chains=connections.chains,
            connections=connections,
            pauses=ChainPauses(db, clock),
            token_rules=TokenRules(),
            rates=RateBook(sources, clock, policy=policy, limits=limits, set_aside=SetAsideSources(db, clock)),
            swaps=tuple(swaps),
            bridges=tuple(bridges),
            secrets=box,
            jwt_secret=jwt_secret,
            keys=keys,
            leaser=IndexLeaser(db, keys, clock),
            signer=signer,
        )


def exchange_context(gateway: Gateway) -> ExchangeContext:
    """Return what asking for exchanges needs: web does so for merchants, the worker by coins' rules."""
    return ExchangeContext(
        registry=gateway.registry,
        keys=gateway.keys,
        clock=gateway.clock,
        ids=gateway.ids,
        rates=gateway.rates,
        token_rules=gateway.token_rules,
        swaps=gateway.swaps,
        bridges=gateway.bridges,
        quote_timeout_ms=gateway.settings.exchanges.quote_timeout_ms,
    )


def database_url(settings: Settings) -> str:
    """Return where the database is. Raises SettingsError."""
    if settings.database.url is None:
        raise SettingsError("database.url must be set.")
    return settings.database.url


def open_database(settings: Settings, role: str) -> Database:
    """Return the configured database; nothing is opened before it is used. Raises SettingsError."""
    database, url = settings.database, database_url(settings)
    # A worker needs many at once when all its recurring jobs are due, and then few for a minute.
    kept = min(database.pool_size, WORKER_KEEPS) if role == "worker" else database.pool_size
    return connect(
        url,
        application_name=f"cambist-{role}",
        pool_size=kept,
        pool_overflow=database.pool_size - kept + database.pool_overflow,
        pool_timeout_s=database.pool_timeout_s,
    )


def open_redis(url: str) -> Redis:
    """Return a client, which gives up soon; nothing is opened before it is used."""
    client: Redis = Redis.from_url(
        url, socket_timeout=REDIS_TIMEOUT_S, socket_connect_timeout=REDIS_TIMEOUT_S, **redis_tls(url)
    )
    return client


async def write_to(redis: Redis) -> None:
    """Write something that is soon gone. One that is full, cannot save, or is a replica answers all that is read.

    Raises RedisError and OSError.
    """
    await redis.set("cambist:tried", 1, px=1_000)


def open_listening(url: str) -> Redis:
    """Return a client for who waits as long as nothing happens, which a timeout would take for an outage."""
    keepalive: dict[str, Any] = {"socket_keepalive": True, "socket_keepalive_options": tcp_options()}
    if url.startswith("unix://"):
        keepalive = {}
    client: Redis = Redis.from_url(url, socket_connect_timeout=REDIS_TIMEOUT_S, **keepalive, **redis_tls(url))
    return client


def redis_tls(url: str) -> dict[str, Any]:
    """Return what the client must be told, which checks a certificate and not whose it is, unless asked to."""
    return {"ssl_check_hostname": True} if url.startswith("rediss://") and "ssl_cert_reqs=none" not in url else {}


def secrets_box(settings: Settings, ids: Ids) -> SecretsBox:
    """Return the box with the application keys. Raises SettingsError."""
    keys = settings.keys
    if keys.application_key is None:
        raise SettingsError("keys.application_key must be set to 64 hexadecimal characters.")
    return SecretsBox([bytes.fromhex(key) for key in (keys.application_key, *keys.previous_keys)], ids.random_bytes)


def plugin_context(clock: Clock, random: Random, budgets: RequestBudgets | None = None) -> PluginContext:
    """Return what plugins are lent; without budgets of the gateway's, they count their requests for this process."""
    return PluginContext(
        now=clock.now,
        monotonic=clock.monotonic,
        random=random,
        user_agent=f"cambist/{__version__}",
        budgets=budgets or OwnBudgets(clock.monotonic),
    )
