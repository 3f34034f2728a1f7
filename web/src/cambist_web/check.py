"""Whether the settings are such that a worker can serve: asked in a process of its own, before any is started."""

from __future__ import annotations

import sys

from cambist.cli.options import EXIT_SETTINGS
from cambist.registry import Registry, RegistryError
from cambist.settings import Settings, SettingsError
from cambist.settings_file import process_settings

from .client_address import parse_networks


def check(settings: Settings) -> None:
    """Refuse what would let every worker fail. Raises SettingsError."""
    try:
        Registry(settings.plugins)
    except RegistryError as error:
        raise SettingsError(str(error)) from None
    try:
        parse_networks(settings.web.trusted_proxies)
    except ValueError as error:
        raise SettingsError(f"web.trusted_proxies: {error}.") from None


if __name__ == "__main__":
    try:
        check(process_settings())
    except SettingsError as error:
        sys.stderr.write(f"cambist: {error}\n")
        sys.exit(EXIT_SETTINGS)
