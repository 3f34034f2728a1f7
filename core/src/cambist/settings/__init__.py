"""The operator's settings: one tree of frozen Structs, read from ``cambist.toml`` and ``CAMBIST_*`` variables.

``cambist.settings_file`` reads it; this module says what there is. No value is shown by ``repr``: some are secret.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from .group import Address, Group, Port
from .sending import UNLIMITED, AskerSettings, Caps, GasSettings, KeySettings, OutboundSettings, SignerSettings

__all__ = [
    "UNLIMITED",
    "Address",
    "AskerSettings",
    "AuditSettings",
    "AuthSettings",
    "Caps",
    "DatabaseSettings",
    "ExchangeSettings",
    "GasSettings",
    "Group",
    "KeySettings",
    "LogSettings",
    "NodeSettings",
    "OutboundSettings",
    "Port",
    "PriceSettings",
    "RateLimitSettings",
    "RedisSettings",
    "RetentionSettings",
    "SandboxSettings",
    "Settings",
    "SettingsError",
    "SignerSettings",
    "TrackerSettings",
    "WebSettings",
    "WebhookSettings",
    "WebhookTargets",
    "WorkerSettings",
]


class DatabaseSettings(Group, frozen=True, kw_only=True):
    """PostgreSQL, 15 or newer. Without ``url`` an embedded one is started by ``up`` and ``demo``.

    With ``allow_unverified_tls`` production takes another machine's without knowing that it is the right one.
    """

    url: Address | None = None
    pool_size: Annotated[int, Meta(ge=1, le=500)] = 10
    pool_overflow: Annotated[int, Meta(ge=0, le=500)] = 10
    pool_timeout_s: Annotated[int, Meta(ge=1, le=300)] = 10
    allow_unverified_tls: bool = False


class NodeSettings(Group, frozen=True, kw_only=True):
    """Nodes and price sources, whose addresses stand in plugins' tables.

    ``allow_http`` says whether those on other networks may be asked over plain http; unset, not in production.
    """

    allow_http: bool | None = None


class WebhookTargets(Struct, frozen=True, kw_only=True):
    """Where webhooks may go: to addresses that are not public, and without TLS."""

    allow_private: bool
    allow_http: bool


class RedisSettings(Group, frozen=True, kw_only=True):
    """Valkey or Redis, 6 or newer. Without ``url`` an embedded one is started by ``up`` and ``demo``.

    With ``allow_unverified_tls`` production takes another machine's without knowing that it is the right one.
    """

    url: Address | None = None
    allow_unverified_tls: bool = False


class WebhookSettings(Group, frozen=True, kw_only=True):
    """How merchants are told. ``retries`` come after the first attempt, each after twice the delay of the last.

    ``concurrency`` is how many attempts may run at once in one worker, those to slow receivers not counted;
    ``concurrency_per_host`` how many of them to one receiver that answers quickly. ``allow_http`` says whether they may
    go over plain http: in production they may not, unless it is set.
    """

    allow_private_targets: bool = False
    allow_http: bool | None = None
    retries: Annotated[int, Meta(ge=0, le=20)] = 5
    timeout_ms: Annotated[int, Meta(ge=100, le=60_000)] = 10_000
    base_delay_ms: Annotated[int, Meta(ge=10, le=3_600_000)] = 1_000
    concurrency: Annotated[int, Meta(ge=1, le=2_000)] = 512
    concurrency_per_host: Annotated[int, Meta(ge=1, le=500)] = 128


class WorkerSettings(Group, frozen=True, kw_only=True):
    """The worker. Its metrics are served at ``/metrics`` where a port is given; 0 lets the system choose one."""

    metrics_host: Annotated[str, Meta(min_length=1, max_length=255)] = "127.0.0.1"
    metrics_port: Annotated[int, Meta(ge=0, le=65_535)] | None = None


class RateLimitSettings(Group, frozen=True, kw_only=True):
    """Requests per minute; 0 means no limit."""

    per_key: Annotated[int, Meta(ge=0, le=10_000_000)] = 6_000
    per_address: Annotated[int, Meta(ge=0, le=10_000_000)] = 600
    login_per_address: Annotated[int, Meta(ge=0, le=100_000)] = 10


class WebSettings(Group, frozen=True, kw_only=True):
    """The web side. ``public_url`` is how customers reach it: it is in the links that merchants hand out.

    ``trusted_proxies`` are the networks whose ``X-Forwarded-For`` is believed. ``unfinished_per_address`` is how many
    requests of an address may wait for a late body; 0 means no limit. ``admin_port`` is for operators alone.
    """

    host: Annotated[str, Meta(min_length=1, max_length=255)] = "127.0.0.1"
    port: Port = 8080
    public_url: Annotated[str, Meta(max_length=2048)] | None = None
    admin_host: Annotated[str, Meta(min_length=1, max_length=255)] = "127.0.0.1"
    admin_port: Port | None = None
    admin_url: Annotated[str, Meta(max_length=2048)] | None = None
    workers: Annotated[int, Meta(ge=1, le=64)] = 1
    trusted_proxies: tuple[str, ...] = ()
    body_bytes_max: Annotated[int, Meta(ge=1_024, le=16_777_216)] = 262_144
    header_timeout_s: Annotated[int, Meta(ge=1, le=60)] = 15
    body_timeout_s: Annotated[int, Meta(ge=1, le=600)] = 30
    unfinished_per_address: Annotated[int, Meta(ge=0, le=100_000)] = 32
    rate_limits: RateLimitSettings = RateLimitSettings()

    @property
    def base_url(self) -> str:
        """Where links point: ``public_url`` without a closing slash, or the address that is listened on."""
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


class PriceSettings(Group, frozen=True, kw_only=True):
    """How old a price may be, how long one is used before asking again, and how many sources must agree.

    ``deviation_max_percent``: a source further from the median of all is not believed.
    ``snapshot_currencies`` are what deposits to accounts are valued in. Every ``watch_s`` a worker looks what is the
    matter with the sources.
    """

    max_age_s: Annotated[int, Meta(ge=1, le=86_400)] = 300
    ttl_s: Annotated[int, Meta(ge=1, le=3_600)] = 15
    timeout_ms: Annotated[int, Meta(ge=100, le=60_000)] = 5_000
    min_sources: Annotated[int, Meta(ge=1, le=20)] = 1
    deviation_max_percent: Annotated[int, Meta(ge=1, le=50)] = 10
    snapshot_currencies: Annotated[tuple[str, ...], Meta(min_length=1, max_length=10)] = ("usd", "eur")
    watch_s: Literal[5, 10, 15, 30, 60] = 60


class ExchangeSettings(Group, frozen=True, kw_only=True):
    """Swaps and bridges. ``quote_timeout_ms`` is how long one provider may take for a quote."""

    quote_timeout_ms: Annotated[int, Meta(ge=100, le=60_000)] = 5_000


class SandboxSettings(Group, frozen=True, kw_only=True):
    """Simulated chains, for sandbox projects."""

    enabled: bool = True


class TrackerSettings(Group, frozen=True, kw_only=True):
    """Trackers. ``history_blocks_max`` is how far back from the newest block the past is read for them.

    One's past is begun at most once in ``history_pause_s``, however often addresses are added.
    """

    history_blocks_max: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 1_000_000
    history_pause_s: Annotated[int, Meta(ge=0, le=86_400)] = 60


class RetentionSettings(Group, frozen=True, kw_only=True):
    """After how many days what is over is deleted. Sessions are over when they have expired."""

    webhooks_days: Annotated[int, Meta(ge=30, le=3_650)] = 30
    trackers_days: Annotated[int, Meta(ge=30, le=3_650)] = 30
    sessions_days: Annotated[int, Meta(ge=1, le=3_650)] = 7
    jobs_days: Annotated[int, Meta(ge=1, le=3_650)] = 30
    cron_runs_days: Annotated[int, Meta(ge=1, le=3_650)] = 1
    usage_days: Annotated[int, Meta(ge=90, le=3_650)] = 400


class AuthSettings(Group, frozen=True, kw_only=True):
    """Sessions in the dashboard. An operator's lasts a working day: it reaches what all merchants have.

    ``registration`` says whether strangers may become merchants: in production they may not, unless it is set.
    ``grant_live`` says whether they get live mode by that: in production they do not, unless it is set.
    """

    jwt_secret: Annotated[str, Meta(min_length=32, max_length=1024)] | None = None
    access_token_s: Annotated[int, Meta(ge=60, le=86_400)] = 900
    refresh_token_s: Annotated[int, Meta(ge=3_600, le=86_400 * 365)] = 86_400 * 30
    session_idle_s: Annotated[int, Meta(ge=300, le=86_400 * 365)] = 43_200
    operator_session_s: Annotated[int, Meta(ge=900, le=86_400 * 30)] = 43_200
    password_reset_s: Annotated[int, Meta(ge=300, le=86_400)] = 3_600
    invitation_s: Annotated[int, Meta(ge=300, le=86_400 * 30)] = 86_400 * 3
    registration: bool | None = None
    grant_live: bool | None = None
    admin_key: Annotated[str, Meta(min_length=32, max_length=1024)] | None = None


class AuditSettings(Group, frozen=True, kw_only=True):
    """The audit log. ``seals_file`` is where each worker process keeps a copy of the seals."""

    seals_file: Path | None = None


class LogSettings(Group, frozen=True, kw_only=True):
    """``auto`` writes lines for people in development and JSON in production."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "text", "json"] = "auto"


class Settings(Group, frozen=True, kw_only=True):
    """The whole file. ``plugins`` holds each plugin's table as it stands, for the plugin itself to judge."""

    environment: Literal["development", "production"] = "development"
    data_dir: Path = Path(".cambist")
    database: DatabaseSettings = DatabaseSettings()
    redis: RedisSettings = RedisSettings()
    web: WebSettings = WebSettings()
    webhooks: WebhookSettings = WebhookSettings()
    nodes: NodeSettings = NodeSettings()
    worker: WorkerSettings = WorkerSettings()
    keys: KeySettings = KeySettings()
    signer: SignerSettings = SignerSettings()
    gas: GasSettings = GasSettings()
    outbound: OutboundSettings = OutboundSettings()
    prices: PriceSettings = PriceSettings()
    exchanges: ExchangeSettings = ExchangeSettings()
    sandbox: SandboxSettings = SandboxSettings()
    trackers: TrackerSettings = TrackerSettings()
    retention: RetentionSettings = RetentionSettings()
    auth: AuthSettings = AuthSettings()
    audit: AuditSettings = AuditSettings()
    log: LogSettings = LogSettings()
    plugins: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def production(self) -> bool:
        """Whether money is real: nothing is made up, everything must be configured."""
        return self.environment == "production"

    @property
    def webhook_targets(self) -> WebhookTargets:
        """Where webhooks may go."""
        allow_http = not self.production if self.webhooks.allow_http is None else self.webhooks.allow_http
        return WebhookTargets(allow_private=self.webhooks.allow_private_targets, allow_http=allow_http)

    @property
    def nodes_over_http(self) -> bool:
        """Whether nodes and price sources on other networks may be asked over plain http."""
        return not self.production if self.nodes.allow_http is None else self.nodes.allow_http

    @property
    def registration_open(self) -> bool:
        """Whether strangers may become merchants."""
        return not self.production if self.auth.registration is None else self.auth.registration

    @property
    def grants_live(self) -> bool:
        """Whether who registers has live mode at once, or waits for the operator's grant."""
        return not self.production if self.auth.grant_live is None else self.auth.grant_live

    @property
    def logs_json(self) -> bool:
        """Whether a log line is a JSON object."""
        return self.production if self.log.format == "auto" else self.log.format == "json"

    @property
    def signer_socket(self) -> Path | None:
        """Where a signer of its own listens; None where the worker signs, and so opens the keystore, itself."""
        if self.signer.socket is not None or not self.signer.separate:
            return self.signer.socket
        return self.data_dir / "signer" / "signer.sock"

    @property
    def signer_store(self) -> Path:
        """The folder in which the signer remembers what it signed."""
        return self.signer.store or self.data_dir / "signer"


class SettingsError(Exception):
    """The settings cannot be used; the message is a sentence that names the file and the setting."""
