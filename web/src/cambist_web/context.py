"""What the web side adds to the gateway, made once per worker and handed to handlers as ``web``."""

from __future__ import annotations

import hmac
import math
from collections import Counter

from litestar import Litestar

from cambist.bootstrap import Gateway
from cambist.services.addresses.macs import AddressMacs
from cambist.services.audit.sums import Sums
from cambist.services.identity.api_keys import KeyAccess, key_hash
from cambist.services.identity.passwords import Passwords
from cambist.services.identity.projects import Projects
from cambist.services.identity.sessions import RefreshTokens, Sessions
from cambist.services.identity.two_factor import TwoFactor
from cambist.services.paging import Cursors
from cambist.services.platform import PlatformSettingsCache
from cambist.services.sandbox import Sandbox
from cambist.services.webhooks.secrets import SigningSecrets
from cambist.settings import RateLimitSettings

from .access_tokens import AccessTokens
from .client_address import parse_networks
from .ratelimit import RateLimit, RateLimiter

BAD_CREDENTIALS_PER_MINUTE = 60
"""How often an address may be wrong about a key or token. Right ones are not counted here."""
FAILED_LOGINS_PERIOD_S = 900
FAILED_LOGINS_PER_MINUTE = 20
"""How many times ``login_per_address`` an account may be guessed at in a minute, by all addresses together."""

CALCULATOR_CACHE_S = 60.0
KEY_CACHE_TTL_S = 1.0
"""How long a worker goes on trusting a key that another worker has just revoked."""
KEY_CACHE_MAX = 10_000


class Limits:
    """How often who may ask."""

    def __init__(self, settings: RateLimitSettings) -> None:
        self.per_key = RateLimit("key", settings.per_key)
        self.per_session = RateLimit("session", settings.per_key)
        self.per_address = RateLimit("address", settings.per_address)
        self.login_per_address = RateLimit("login", settings.login_per_address)
        self.failed_login = RateLimit("failed-login", settings.login_per_address, FAILED_LOGINS_PERIOD_S)
        self.failed_login_anywhere = RateLimit(
            "failed-login-anywhere", settings.login_per_address * FAILED_LOGINS_PER_MINUTE
        )
        self.bad_credentials = RateLimit("bad-credentials", BAD_CREDENTIALS_PER_MINUTE if settings.per_address else 0)


class KeyCache:
    """The keys that were good a moment ago, by hash, so that a busy shop's key is not looked up every time."""

    def __init__(self) -> None:
        self._found: dict[bytes, tuple[KeyAccess, float]] = {}
        self._good: set[bytes] = set()

    def get(self, hashed: bytes, now: float) -> KeyAccess | None:
        found = self._found.get(hashed)
        return found[0] if found is not None and now < found[1] else None

    def put(self, hashed: bytes, access: KeyAccess, now: float) -> None:
        if len(self._found) >= KEY_CACHE_MAX:
            self._found.clear()
        self._found[hashed] = (access, now + KEY_CACHE_TTL_S)
        if len(self._good) >= KEY_CACHE_MAX:
            self._good.clear()
        self._good.add(hashed)

    def was_good(self, hashed: bytes) -> bool:
        """Say whether the key was good when this worker looked last. It may have been revoked since."""
        return hashed in self._good

    def forget(self, hashed: bytes) -> None:
        """Forget a key that is not good any more."""
        self._good.discard(hashed)

    def clear(self) -> None:
        """Forget every key: one was revoked, a project switched off, or live mode taken back, in this very process."""
        self._found.clear()


class Web:
    """One worker's own things. ``gateway`` is everybody's."""

    def __init__(self, gateway: Gateway) -> None:
        settings = gateway.settings
        admin_key = settings.auth.admin_key
        self.gateway = gateway
        self.settings = settings
        self.db = gateway.db
        self.clock = gateway.clock
        self.ids = gateway.ids
        self.access_tokens = AccessTokens(
            _derive(gateway.jwt_secret, "access tokens"), gateway.clock, lifetime_s=settings.auth.access_token_s
        )
        self.refresh_tokens = RefreshTokens(_derive(gateway.jwt_secret, "refresh tokens"), gateway.ids)
        self.sessions = Sessions(
            self.refresh_tokens,
            gateway.ids,
            lifetime_s=settings.auth.refresh_token_s,
            idle_s=settings.auth.session_idle_s,
        )
        self.passwords = Passwords(gateway.ids.random_bytes)
        self.two_factor = TwoFactor(gateway.db, gateway.secrets, gateway.ids, gateway.clock)
        self.secrets = SigningSecrets(gateway.secrets)
        self.projects = Projects(self.secrets, gateway.ids, targets=settings.webhook_targets)
        self.limiter = RateLimiter(gateway.redis, gateway.clock)
        self.limits = Limits(settings.web.rate_limits)
        self.key_cache = KeyCache()
        self.macs = AddressMacs(gateway.secrets)
        self.audit_sums = Sums(gateway.db, gateway.clock)
        self.unfinished: Counter[str] = Counter()
        self.busy_told_until = -math.inf
        self.sandbox = Sandbox(
            db=gateway.db,
            registry=gateway.registry,
            clock=gateway.clock,
            ids=gateway.ids,
            hints=gateway.hints,
            macs=self.macs,
        )
        self.platform = PlatformSettingsCache(gateway.db, gateway.clock)
        self.calculator_settings = PlatformSettingsCache(gateway.db, gateway.clock, CALCULATOR_CACHE_S)
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
