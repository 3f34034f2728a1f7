"""The processes of the gateway: found by entry point, because core imports neither web nor tasks."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import cast

import click

from cambist.ports import system_ids
from cambist.provision import provision
from cambist.registry import RegistryError
from cambist.settings import Settings, SettingsError
from cambist.signer import SignerUnavailableError
from cambist.signer.files import KeystoreError

from .imports import collector_off, import_jwt
from .options import Invocation

GROUP = "cambist.processes"
SUPERVISOR_FD = "CAMBIST_SUPERVISOR_FD"


def run_process(name: str, invocation: Invocation) -> None:
    """Run ``web`` or ``worker`` in this process until it ends.

    The entry point is a function that takes the settings and returns when it was asked to stop.
    """
    stop_with_the_supervisor()
    # Where a signer of its own holds the keys, no worker looks for the passphrase.
    passphrase = name == "worker" and invocation.settings().signer_socket is None
    settings = invocation.settings(passphrase=passphrase)
    if settings.database.url is None or settings.redis.url is None:
        raise SettingsError(f"'cambist {name}' needs database.url and redis.url; only 'up' starts servers of its own.")
    os.environ.update(provision(settings, system_ids(), keystore=passphrase))
    settings = invocation.settings(passphrase=passphrase)
    try:
        sys.exit(load_process(name)(settings))
    except (RegistryError, KeystoreError) as error:
        raise SettingsError(str(error)) from error
    except SignerUnavailableError as error:  # which may pass with time: a supervisor shall try again
        raise click.ClickException(str(error)) from error


def load_process(name: str) -> Callable[[Settings], int | None]:
    """Import a process, and return what runs it. Raises SettingsError if no installed package brings it."""
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        raise SettingsError(f"No installed package brings the process '{name}'; install cambist-web and cambist-tasks.")
    with collector_off():
        import_jwt()
        return cast("Callable[[Settings], int | None]", found[0].load())


def stop_with_the_supervisor() -> None:
    """End this process, as if asked to, when the one that supervises it is gone, however it went."""
    descriptor = os.environ.pop(SUPERVISOR_FD, None)
    if descriptor is None:
        return
    os.set_inheritable(int(descriptor), False)  # noqa: FBT003  the parameter has no name

    def wait() -> None:
        os.read(int(descriptor), 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="supervisor", daemon=True).start()
