"""``cambist web``."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

import click

from cambist.settings import WebSettings

from .options import Invocation, settings_options
from .processes import run_process


@click.command()
@settings_options
@click.option("--host", help="The address to listen on, over web.host.")
@click.option("--port", type=click.IntRange(1, 65535), help="The port to listen on, over web.port.")
def web(invocation: Invocation, host: str | None, port: int | None) -> None:
    """Serve the API, checkout and dashboard. Run as many as you like."""
    export_listener(host, port)
    run_process("web", invocation)


def export_listener(host: str | None, port: int | None) -> None:
    """Put what the command line says over what the settings say."""
    if host is not None:
        os.environ["CAMBIST_WEB__HOST"] = host
    if port is not None:
        os.environ["CAMBIST_WEB__PORT"] = str(port)


def listened_on(settings: WebSettings) -> Sequence[tuple[str, int]]:
    """Return every host and port that is listened on."""
    admin = [] if settings.admin_port is None else [(settings.admin_host, settings.admin_port)]
    return [(settings.host, settings.port), *admin]


def port_trouble(host: str, port: int) -> str | None:
    """Return why the port cannot be listened on. Two servers could share it, and each would get half the requests."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error.strerror or str(error)
    return None
