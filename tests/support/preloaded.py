"""Imports what the gateway's processes do, for the fork server to have it before it forks them.

It also builds the web side's routes, which takes a second of a core, and the same ones for every gateway of a story.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from litestar import Litestar

from cambist.cli.imports import collector_off
from cambist.settings import WebSettings
from cambist_chainkit.imports import limit_kept
from cambist_web import app

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
    _build, _built_for = app.build_app, WebSettings()
    _built = _build(_built_for)


def built_app(settings: WebSettings, serves: app.Serves = "all") -> Litestar:
    """Return the app that is built already, where it is what was asked for."""
    url = settings.base_url
    if serves != "all" or settings.body_bytes_max != _built_for.body_bytes_max or url.startswith("https"):
        return _build(settings, serves)
    assert _built.openapi_config is not None
    assert _built.openapi_config.contact is not None
    _built.openapi_config.contact.url = url
    return _built


app.build_app = built_app
