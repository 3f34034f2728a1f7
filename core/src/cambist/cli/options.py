"""What subcommands share: where the settings are, and how a process is prepared from them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct

from cambist.logs import configure_logs
from cambist.settings import Settings
from cambist.settings_file import CONFIG_VARIABLE, DATA_DIR_VARIABLE, process_settings

EXIT_SETTINGS = 78
"""What a process ends with when starting it again would be in vain (EX_CONFIG of sysexits.h)."""

DEFAULT_CONFIG = "cambist.toml"

F = TypeVar("F", bound=Callable[..., Any])


class Invocation(Struct, frozen=True):
    """Where the settings are. Leaves both in the environment, so that every process of ours finds the same."""

    config: Path | None
    data_dir: Path | None

    def settings(self, *, passphrase: bool = False, signer_only: bool = False) -> Settings:
        """Read the settings, or what of them concerns the signer, and write the log as they say.

        Raises SettingsError.
        """
        for name, path in ((CONFIG_VARIABLE, self.config), (DATA_DIR_VARIABLE, self.data_dir)):
            if path is not None:
                os.environ[name] = str(path.absolute())
        settings = process_settings(passphrase=passphrase, signer_only=signer_only)
        configure_logs(level=settings.log.level, json=settings.logs_json)
        return settings


def settings_options(command: F) -> F:
    """Add ``--config`` and ``--data-dir``, which arrive as one argument, ``invocation``."""

    def wrapper(config: Path | None, data_dir: Path | None, **options: object) -> object:
        default = Path(DEFAULT_CONFIG)
        found = config or (default if default.exists() else None)
        return command(invocation=Invocation(found, data_dir), **options)

    wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
    wrapper.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    path = click.Path(path_type=Path, dir_okay=False, exists=True)
    folder = click.Path(path_type=Path, file_okay=False)
    config = click.option("--config", type=path, envvar=CONFIG_VARIABLE, help="The settings [default: ./cambist.toml].")
    data_dir = click.option("--data-dir", type=folder, envvar=DATA_DIR_VARIABLE, help="Where embedded servers live.")
    return config(data_dir(wrapper))  # type: ignore[return-value]  # click keeps what it decorates
