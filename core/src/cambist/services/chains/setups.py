"""What is in force of each chain: the operator's file, and what rows change of it. Every process follows it.

``refresh`` is called every few seconds, and at a hint. It connects a chain anew where its setup is another than before,
and in web, where nothing is connected, changes what is known of its tokens alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

import structlog
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models.base import listed
from cambist.db.structs import to_struct
from cambist.domain.troubles import SETUP_PROBLEMS, SetupProblem, SetupSaid
from cambist.plugin import NetworkSetup, Token, endpoint_key
from cambist.registry import ChainConnections, Registry, SetupError
from cambist.secrets import SecretsBox, SecretsError

TOPIC = "chains"
"""The hint that something of a chain was asked for, or is in force from now on."""

URL_FIELD = "chain_endpoints.url"
IN_USE = ("enabled", "disabled")
"""A disabled token is looked for all the same: what comes is credited."""

log = structlog.get_logger(__name__)


class StoredEndpoint(Struct, frozen=True, kw_only=True):
    """An endpoint that is in use, or one of the file that is not: removed, or being checked before it comes back."""

    endpoint_id: str
    chain: str
    origin: str
    state: str
    url_encrypted: bytes


class StoredToken(Struct, frozen=True, kw_only=True):
    """A token that was added and is looked for."""

    chain: str
    contract: str
    symbol: str
    decimals: int
    label: str
    revision: int

    @property
    def token(self) -> Token:
        return Token(symbol=self.symbol, contract=self.contract, decimals=self.decimals, label=self.label)


class Changes(Struct, frozen=True, kw_only=True):
    """What rows say of all chains."""

    endpoints: Sequence[StoredEndpoint]
    tokens: Sequence[StoredToken]

    def concern(self, chain: str) -> bool:
        """Whether rows say something of a chain."""
        return any(one.chain == chain for one in self.endpoints) or any(one.chain == chain for one in self.tokens)

    def revision(self, chain: str) -> int:
        """Which tokens of a chain these are: what a scan with them may be stored for."""
        return max((one.revision for one in self.tokens if one.chain == chain), default=0)


_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_ANY_CHECKING = """
SELECT EXISTS (SELECT FROM chain_endpoints WHERE state = 'checking')
    OR EXISTS (SELECT FROM chain_tokens WHERE state = 'checking')
"""
# As text: every process asks both every other second, and made by SQLAlchemy they cost it twice as much.
_ENDPOINTS = """
SELECT endpoint_id, chain, origin, state, url_encrypted FROM chain_endpoints
WHERE state IN ('in_use', 'removed', 'checking') AND url_encrypted IS NOT NULL
ORDER BY id
"""
_TOKENS = f"""
SELECT chain, contract, symbol, decimals, label, revision FROM chain_tokens
WHERE origin = 'added' AND state IN ({listed(IN_USE)}) AND ($1::text IS NULL OR (chain, symbol) = ($1, $2::text))
ORDER BY id
"""  # noqa: S608  constants


async def lock_tokens(conn: AsyncConnection, chain: str) -> None:
    """Let nobody else change which tokens a chain has, or begin to read it, until the transaction ends."""
    await conn.exec_driver_sql(_LOCK, (f"chain tokens {chain}",))


async def lock_token(conn: AsyncConnection, registry: Registry, chain: str, token: Token) -> Token:
    """Return what the symbol of this process' token stands for now, and let it be nothing else until the end.

    Another process may have put another contract in its place, of other decimals, which this one learns of in seconds.
    """
    await lock_tokens(conn, chain)
    file = registry.file_chains.get(chain)
    if file is not None and file.token(token.symbol) is not None:
        return token
    row = (await conn.exec_driver_sql(_TOKENS, (chain, token.symbol))).one_or_none()
    return token if row is None or row.contract == token.contract else to_struct(StoredToken, row).token


async def lock_endpoints(conn: AsyncConnection, chain: str) -> None:
    """Let nobody else change a chain's endpoints until the transaction ends: several at once would leave none."""
    await conn.exec_driver_sql(_LOCK, (f"chain endpoints {chain}",))


async def any_checking(conn: AsyncConnection) -> bool:
    """Whether any endpoint or token was added that a node is still to be asked about, also where somebody does."""
    return bool((await conn.exec_driver_sql(_ANY_CHECKING)).scalar_one())


async def load(conn: AsyncConnection) -> Changes:
    """Return what rows say now."""
    return Changes(
        endpoints=[to_struct(StoredEndpoint, row) for row in await conn.exec_driver_sql(_ENDPOINTS)],
        tokens=[to_struct(StoredToken, row) for row in await conn.exec_driver_sql(_TOKENS, (None, None))],
    )


def seal(box: SecretsBox, endpoint_id: str, url: str) -> bytes:
    """Return an endpoint's address as it is stored."""
    return box.encrypt(url.encode(), field=URL_FIELD, row=endpoint_id)


def opened(box: SecretsBox, endpoint_id: str, url_encrypted: bytes) -> str:
    """Return the address, which holds keys: for connecting, and for comparing. Raises SecretsError."""
    return box.decrypt(url_encrypted, field=URL_FIELD, row=endpoint_id).decode()


def with_endpoints(box: SecretsBox, file: NetworkSetup, stored: Iterable[StoredEndpoint]) -> NetworkSetup:
    """Return the file's setup with the endpoints of one chain's rows: those added, without those removed.

    At least what the file says, where rows would leave nothing. One that was removed of the file is so however the file
    spells it by now; with somebody else's name in it, it is another one. Of two ways to one node the added one stands.
    """
    urls = [(one, opened(box, one.endpoint_id, one.url_encrypted)) for one in stored]
    removed = {_way_to(url) for one, url in urls if one.origin == "file" and one.state != "in_use"}
    added = [url for one, url in urls if one.origin == "added" and one.state == "in_use"]
    wanted = [url for url in file.endpoints if _way_to(url) not in removed] + added
    # One that has come into the file since, or was spelt otherwise, is one node all the same.
    nodes = {endpoint_key(url): url for url in wanted}
    return replace(file, endpoints=tuple(url for url in wanted if nodes[endpoint_key(url)] is url) or file.endpoints)


def _way_to(url: str) -> tuple[str, str]:
    """Return which node an address names, and who signs in there."""
    try:
        return endpoint_key(url), urlsplit(url).netloc.rpartition("@")[0]
    except ValueError:
        return url, ""


def with_tokens(
    registry: Registry, chain: str, setup: NetworkSetup, stored: Iterable[StoredToken]
) -> tuple[NetworkSetup, Sequence[str]]:
    """Return the setup with the added tokens of one chain, and a sentence for each that the file stands against."""
    known = registry.file_chains[chain].tokens
    contracts, symbols = {one.contract for one in known}, {one.symbol for one in known}
    added, problems = [], []
    for one in stored:
        if one.contract in contracts:
            continue  # it has come into the file since
        if one.symbol in symbols:
            problems.append(SETUP_PROBLEMS[SetupProblem.SYMBOL_TAKEN].format(symbol=one.symbol, contract=one.contract))
            continue
        added.append(one.token)
    return replace(setup, tokens=(*setup.tokens, *added)), problems


class Refreshed(Struct, frozen=True, kw_only=True):
    """What became of a refresh: by chain, why something that was asked for does not hold here."""

    problems: Mapping[str, SetupSaid]


class Setups:
    """What is in force in this process, of every chain that can be changed."""

    def __init__(self, connections: ChainConnections, registry: Registry, box: SecretsBox | None) -> None:
        """Without a box, endpoints are those of the file: nobody can read what was added."""
        self._connections = connections
        self._registry = registry
        self._box = box

    async def refresh(self, changes: Changes) -> Refreshed:
        """Let every chain follow what is in force. A chain that cannot goes on as it is, and says why."""
        problems: dict[str, SetupSaid] = {}
        for chain in self._registry.chains:
            file = self._registry.setup(chain)
            if file is None:
                if changes.concern(chain):
                    code = SetupProblem.NOT_CHANGEABLE
                    problems[chain] = SetupSaid(code, SETUP_PROBLEMS[code])
                continue
            try:
                taken = await self._refresh(chain, file, changes)
            except (SetupError, SecretsError) as error:
                log.warning("chain_not_changed", chain=chain, error=str(error))
                problems[chain] = SetupSaid(SetupProblem.SETUP_REFUSED, str(error))
            else:
                if taken:
                    problems[chain] = SetupSaid(SetupProblem.SYMBOL_TAKEN, " ".join(taken))
        return Refreshed(problems=problems)

    async def _refresh(self, chain: str, file: NetworkSetup, changes: Changes) -> Sequence[str]:
        registry, connections = self._registry, self._connections
        setup, problems = with_tokens(registry, chain, file, [one for one in changes.tokens if one.chain == chain])
        if chain in connections.chains:
            if self._box is not None:
                endpoints = [one for one in changes.endpoints if one.chain == chain]
                setup = with_endpoints(self._box, setup, endpoints)
            before = connections.setups[chain]
            await connections.change(chain, setup, revision=changes.revision(chain))
            if setup != before:
                log.info("chain_changed", chain=chain, endpoints=len(setup.endpoints), tokens=len(setup.tokens))
        elif setup != file or registry.chains[chain] is not registry.file_chains[chain]:
            registry.chains[chain] = registry.info(chain, setup)
        return problems
