"""Structured logs, from which secrets are removed before they are written."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

from .plugin import printable

REDACTED = "[redacted]"

_SECRET_NAMES = re.compile(
    r"pass(word|phrase)|secret|(access|refresh|auth|reset)_?token|api_?key|application_key|admin_key|authorization|cookie|mnemonic|^seed$|xprv"
    r"|private_?key|signature|jwt",
    re.IGNORECASE,
)
# A stranger's path is logged where a request fails, and may be long: none of these goes through it again and again.
_SECRET_TEXTS = (
    # Passwords in addresses, and provider keys in their paths and queries.
    (re.compile(r"(://[^\s/:@]*:)[^\s@/]+@"), rf"\1{REDACTED}@"),
    (
        re.compile(r"([?&](?:api_?key|key|token|secret|pass(?:word|wd|phrase)?)=)[^\s&\"']+", re.IGNORECASE),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"\bck_(live|test)_[0-9A-Za-z]+"), rf"ck_\1_{REDACTED}"),
    (re.compile(r"\b[xt]prv[1-9A-HJ-NP-Za-km-z]{50,}"), REDACTED),
    (re.compile(r"\b(Bearer )[A-Za-z0-9._~+/=-]+"), rf"\1{REDACTED}"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{1,2048}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"), REDACTED),
)
_DEPTH_MAX = 6


def redact(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Remove what is secret by its name or by its look, at any depth; tracebacks included."""
    return {name: _clean(name, value, _DEPTH_MAX) for name, value in event.items()}


def is_secret_name(name: str) -> bool:
    """Say whether what goes by this name is secret."""
    return _SECRET_NAMES.search(name) is not None


def redact_text(text: str) -> str:
    """Remove what looks like a secret from a text."""
    for pattern, replacement in _SECRET_TEXTS:
        text = pattern.sub(replacement, text)
    return text


def write_out(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Write out what would act on a terminal instead of being seen; tracebacks keep their lines."""
    return {
        name: printable(value, lines=name in {"exception", "stack"}) if isinstance(value, str) else value
        for name, value in event.items()
    }


def _clean(name: str, value: object, depth: int) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if is_secret_name(name):
        return REDACTED
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if depth > 0 and isinstance(value, dict):
        return {key: _clean(str(key), item, depth - 1) for key, item in value.items()}
    if depth > 0 and isinstance(value, list | tuple):
        return [_clean("", item, depth - 1) for item in value]
    # Whatever else it is, it is written as a text: clean that one.
    return redact_text(value if isinstance(value, str) else repr(value))


def configure_logs(*, level: str = "info", json: bool = False, stream: TextIO | None = None) -> None:
    """Send every log of the process, the libraries' too, through one redacting chain to one stream."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        redact,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.add_logger_name,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *([] if json else [write_out]),
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # A line per request, address and all, per step of their start, or per job: noise beside ours.
    for name in ("aiohttp.access", "alembic", "arq"):
        logging.getLogger(name).setLevel(logging.WARNING)
