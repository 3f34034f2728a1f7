"""Imports what the gateway's processes do, for the fork server to have it before it forks them."""

from __future__ import annotations

from importlib import import_module

from cambist.cli.imports import collector_off

MODULES = (
    "asyncpg",
    "cambist.cli.signer",
    "cambist.cli.up",
    "cambist.db.direct",
    "cambist.db.migrations",
    "cambist.provision",
    "cambist.registry",
    "cambist.signer.keystore",
    "cambist_tasks.worker",
    "cambist_web.server",
    "cambist_web.worker",
    "tronpy.keys",
)

with collector_off():
    for _name in MODULES:
        import_module(_name)
