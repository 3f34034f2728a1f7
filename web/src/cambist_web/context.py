"""What the web side adds to the gateway, made once per worker and handed to handlers as ``web``."""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from typing import Generic

from litestar import Litestar

from cambist.bootstrap import Gateway
from cambist.db.cached import Cached
from cambist.services.addresses.macs import AddressMacs
from cambist.services.audit.sums import Sums
from cambist.services.chains.context import ChainContext
from cambist.services.chains.following import Follower
from cambist.services.identity.api_keys import KeyAccess, key_hash
from cambist.services.identity.members import MEMBERS
from cambist.services.identity.operators import OPERATORS
from cambist.services.identity.passwords import Passwords
from cambist.services.identity.people import P, People, V
from cambist.services.identity.plan_catalog import load_offers
from cambist.services.identity.projects import Projects
from cambist.services.identity.sessions import RefreshTokens, Sessions
from cambist.services.identity.two_factor import TwoFactor
from cambist.services.paging import Cursors
from cambist.services.platform import PlatformSettingsCache
from cambist.services.sandbox import Sandbox
from cambist.services.trackers.create import TrackerContext
from cambist.services.trackers.credentials import TrackerSecrets
from cambist.services.webhooks.endpoints import Endpoints
from cambist.services.webhooks.secrets import SigningSecrets
from cambist.settings import RateLimitSettings

from .access_tokens import MERCHANTS_AUDIENCE, OPERATORS_AUDIENCE, AccessTokens
from .client_address import parse_networks
from .file_permits import FilePermits
from .ratelimit import RateLimit, RateLimiter
from .status_board import StatusBoard

BAD_CREDENTIALS_PER_MINUTE = 60
"""How often an address may be wrong about a key or token. Right ones are not counted here."""
FAILED_LOGINS_PERIOD_S = 900
FAILED_LOGINS_PER_MINUTE = 20
"""How many times ``login_per_address`` an account may be guessed at in a minute, by all addresses together."""

OVERVIEWS_PER_MINUTE = 60
"""How often a merchant may have everything summed up. One costs the database as much as many other requests."""

OVERVIEWS_AT_ONCE = 3
"""How many one process sums up at once; the others wait, without a connection that somebody else could use."""

AROUND_AT_ONCE = 3
"""How many acts one process has under way that keep a connection for their key while they work on others."""

FILES_PER_MINUTE = 10
"""How many lists a merchant may have as files. All that a list has is counted first, and looked through."""

CALCULATOR_CACHE_S = 60.0
KEY_CACHE_TTL_S = 1.0
"""How long a worker goes on trusting a key that another worker has just revoked."""
KEY_CACHE_MAX = 10_000


class Limits:
    """How often who may ask."""

    def __init__(self, settings: RateLimitSettings) -> None:
        self.per_key = RateLimit("key", settings.per_key)
        self.per_session = RateLimit("session", settings.per_key)
        self.per_tracker = RateLimit("tracker", settings.per_key)
        self.overviews = RateLimit("overviews", OVERVIEWS_PER_MINUTE if settings.per_key else 0)
        self.files = RateLimit("files", FILES_PER_MINUTE if settings.per_key else 0)
        self.per_address = RateLimit("address", settings.per_address)
        self.login_per_address = RateLimit("login", settings.login_per_address)
        self.failed_login = RateLimit("failed-login", settings.login_per_address, FAILED_LOGINS_PERIOD_S)
        self.failed_login_anywhere = RateLimit(
            "failed-login-anywhere", settings.login_per_address * FAILED_LOGINS_PER_MINUTE
        )
        self.bad_credentials = RateLimit("bad-credentials", BAD_CREDENTIALS_PER_MINUTE if settings.per_address else 0)

    def of_key(self, requests_per_minute: int | None) -> RateLimit:
        """Return the limit of a key: what the merchant's plan says, or the operator's where it says nothing."""
        return _planned(self.per_key, requests_per_minute)

    def of_tracker(self, requests_per_minute: int | None) -> RateLimit:
        """Return the limit of a tracker's token, which is that of a key."""
        return _planned(self.per_tracker, requests_per_minute)


def _planned(limit: RateLimit, most: int | None) -> RateLimit:
    return limit if most is None else RateLimit(limit.name, most)


class GoodHashes:
    """Hashes of keys or tokens that were good when this worker looked last. They may have been revoked since."""

    def __init__(self) -> None:
        self._good: set[bytes] = set()

    def add(self, hashed: bytes) -> None:
        if len(self._good) >= KEY_CACHE_MAX:
            self._good.clear()
        self._good.add(hashed)

    def was_good(self, hashed: bytes) -> bool:
        """Say whether this was good when this worker looked last."""
        return hashed in self._good

    def forget(self, hashed: bytes) -> None:
        """Forget what is not good any more."""
        self._good.discard(hashed)


class KeyCache(GoodHashes):
    """The keys that were good a moment ago, by hash, so that a busy shop's key is not looked up every time."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[bytes, tuple[KeyAccess, float]] = {}
        self.cleared = 0
        """How often it was: what was looked up before may have been revoked meanwhile."""

    def get(self, hashed: bytes, now: float) -> KeyAccess | None:
        found = self._found.get(hashed)
        return found[0] if found is not None and now < found[1] else None

    def put(self, hashed: bytes, access: KeyAccess, now: float, cleared: int) -> None:
        """Keep what was looked up from ``now`` on, unless keys were forgotten since they had been ``cleared`` times."""
        self.add(hashed)
        if cleared != self.cleared:
            return
        if len(self._found) >= KEY_CACHE_MAX:
            self._found.clear()
        self._found[hashed] = (access, now + KEY_CACHE_TTL_S)

    def replace(self, hashed: bytes, access: KeyAccess, by: KeyAccess) -> None:
        """Keep the one in the place of the other, if that is still here, and for no longer than that."""
        found = self._found.get(hashed)
        if found is not None and found[0] is access:
            self._found[hashed] = (by, found[1])

    def clear(self) -> None:
        """Forget every key: one was revoked, a project switched off, or live mode taken back, in this very process."""
        self._found.clear()
        self.cleared += 1


class SignIns(Generic[V, P]):
    """What one kind of people signs in with. Its keys are its own, so no token of one kind is any of the other's."""

    def __init__(
        self, gateway: Gateway, people: People[V, P], audience: str, whose: str = "", *, lifetime_s: int
    ) -> None:
        auth = gateway.settings.auth
        self.people = people
        self.access_tokens = AccessTokens(
            _derive(gateway.jwt_secret, f"{whose}access tokens"),
            gateway.clock,
            lifetime_s=auth.access_token_s,
            audience=audience,
        )
        self.refresh_tokens = RefreshTokens(_derive(gateway.jwt_secret, f"{whose}refresh tokens"), gateway.ids)
        self.sessions = Sessions(
            people, self.refresh_tokens, gateway.ids, lifetime_s=lifetime_s, idle_s=auth.session_idle_s
        )
        self.two_factor = TwoFactor(people, gateway.db, gateway.secrets, gateway.ids, gateway.clock)


class Web:
    """One worker's own things. ``gateway`` is everybody's."""

    def __init__(self, gateway: Gateway) -> None:
        settings = gateway.settings
        auth, admin_key = settings.auth, settings.auth.admin_key
        self.gateway = gateway
        self.is_restored = False
        self.settings = settings
        self.db = gateway.db
        self.clock = gateway.clock
        self.ids = gateway.ids
        self.merchants = SignIns(gateway, MEMBERS, MERCHANTS_AUDIENCE, lifetime_s=auth.refresh_token_s)
        self.operators = SignIns(
            gateway, OPERATORS, OPERATORS_AUDIENCE, "operators' ", lifetime_s=auth.operator_session_s
        )
        self.access_tokens, self.refresh_tokens = self.merchants.access_tokens, self.merchants.refresh_tokens
        self.sessions, self.two_factor = self.merchants.sessions, self.merchants.two_factor
        self.passwords = Passwords(gateway.ids.random_bytes)
        self.secrets = SigningSecrets(gateway.secrets)
        self.projects = Projects(self.secrets, gateway.ids, targets=settings.webhook_targets)
        self.trackers = TrackerContext(
            registry=gateway.registry,
            secrets=TrackerSecrets(gateway.secrets),
            clock=gateway.clock,
            ids=gateway.ids,
            targets=settings.webhook_targets,
            history_blocks_max=settings.trackers.history_blocks_max,
        )
        self.endpoints = Endpoints(self.secrets, gateway.ids, targets=settings.webhook_targets)
        self.chain_context = ChainContext(registry=gateway.registry, secrets=gateway.secrets, ids=gateway.ids)
        self.follower = Follower(
            gateway.db, gateway.connections, gateway.registry, gateway.secrets, gateway.token_rules
        )
        self.limiter = RateLimiter(gateway.redis, gateway.clock)
        self.limits = Limits(settings.web.rate_limits)
        self.key_cache = KeyCache()
        self.good_tokens = GoodHashes()
        self.macs = AddressMacs(gateway.secrets)
        self.audit_sums = Sums(gateway.db, gateway.clock)
        self.unfinished: Counter[str] = Counter()
        self.told_until: dict[str, float] = {}  # when the log may be told the next time, by its event
        self.had_no_room = False  # whether the database had no room left on its disk when something was written last
        self.overviews = asyncio.Semaphore(OVERVIEWS_AT_ONCE)
        self.around = asyncio.Semaphore(AROUND_AT_ONCE)
        self.files = FilePermits(gateway.db)
        self.sandbox = Sandbox(
            db=gateway.db,
            registry=gateway.registry,
            clock=gateway.clock,
            ids=gateway.ids,
            hints=gateway.hints,
            macs=self.macs,
            fiat_currencies=settings.prices.snapshot_currencies,
        )
        self.platform = PlatformSettingsCache(gateway.db, gateway.clock)
        self.offers = Cached(gateway.db, gateway.clock, load_offers, CALCULATOR_CACHE_S)
        self.status = StatusBoard(gateway)
        self.trusted_proxies = parse_networks(settings.web.trusted_proxies)
        self.admin_key_hash = None if admin_key is None else key_hash(admin_key)

    def cursors(self, name: str, *owner: object) -> Cursors:
        """Return what opens and seals the cursors of this list of this owner."""
        return Cursors(self.gateway.secrets, name, *owner)


def web_of(app: Litestar) -> Web:
    web: Web = app.state.web
    return web


def _derive(secret: str, purpose: str) -> bytes:
    """One secret in the settings, a key of its own for each purpose."""
    return hmac.digest(secret.encode(), purpose.encode(), "sha256")
