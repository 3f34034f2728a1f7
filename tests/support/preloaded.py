"""Imports what the gateway's processes do, for the fork server to have it before it forks them."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from cambist.cli.imports import collector_off
from cambist_chainkit.imports import limit_kept

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
API = "cambist_web.api"
"""Its modules are imported by whoever builds the web side."""

with collector_off():
    for _name in MODULES:
        import_module(_name)
    for _module in pkgutil.iter_modules(import_module(API).__path__):
        import_module(f"{API}.{_module.name}")
    with limit_kept():
        import_module("web3")  # for the workers and commands of gateways that swap, which it takes seconds otherwise
