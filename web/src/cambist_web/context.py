"""What the web side adds to the gateway, made once per worker and handed to handlers as ``web``."""

from __future__ import annotations

import hmac

from litestar import Litestar
from msgspec import Struct

from cambist.bootstrap import Gateway
from cambist.services.identity.api_keys import key_hash
from cambist.services.identity.passwords import Passwords
from cambist.services.identity.projects import Projects
from cambist.services.identity.sessions import RefreshTokens
from cambist.services.identity.two_factor import TwoFactor
from cambist.services.platform import PlatformSettingsCache
from cambist.services.sandbox import Sandbox
from cambist.services.webhooks.secrets import SigningSecrets
from cambist.settings import RateLimitSettings

from .access_tokens import AccessTokens
from .client_address import parse_networks
from .key_cache import KeyCache
from .ratelimit import RateLimit, RateLimiter

BAD_CREDENTIALS_PER_MINUTE = 60
"""How often an address may be wrong about a key or token. Right ones are not counted here."""
CALCULATOR_CACHE_S = 60.0


class Limits(Struct, frozen=True, kw_only=True):
    """How often who may ask."""

    per_key: RateLimit
    per_session: RateLimit
    per_address: RateLimit
    login_per_address: RateLimit
    login_per_email: RateLimit
    bad_credentials: RateLimit


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
        self.passwords = Passwords(gateway.ids.random_bytes)
        self.two_factor = TwoFactor(gateway.db, gateway.secrets, gateway.ids, gateway.clock)
        self.secrets = SigningSecrets(gateway.secrets)
        self.projects = Projects(
            self.secrets, gateway.ids, allow_private_targets=settings.webhooks.allow_private_targets
        )
        self.limiter = RateLimiter(gateway.redis, gateway.clock)
        self.limits = _limits(settings.web.rate_limits)
        self.key_cache = KeyCache()
        self.sandbox = Sandbox(
            db=gateway.db, registry=gateway.registry, clock=gateway.clock, ids=gateway.ids, hints=gateway.hints
        )
        self.platform = PlatformSettingsCache(gateway.db, gateway.clock)
        self.calculator_settings = PlatformSettingsCache(gateway.db, gateway.clock, CALCULATOR_CACHE_S)
        self.trusted_proxies = parse_networks(settings.web.trusted_proxies)
        self.admin_key_hash = None if admin_key is None else key_hash(admin_key)


def web_of(app: Litestar) -> Web:
    web: Web = app.state.web
    return web


def _derive(secret: str, purpose: str) -> bytes:
    """One secret in the settings, a key of its own for each purpose."""
    return hmac.digest(secret.encode(), purpose.encode(), "sha256")


def _limits(settings: RateLimitSettings) -> Limits:
    return Limits(
        per_key=RateLimit("key", settings.per_key),
        per_session=RateLimit("session", settings.per_key),
        per_address=RateLimit("address", settings.per_address),
        login_per_address=RateLimit("login", settings.login_per_address),
        login_per_email=RateLimit("login-email", settings.login_per_address),
        bad_credentials=RateLimit("bad-credentials", BAD_CREDENTIALS_PER_MINUTE if settings.per_address else 0),
    )
