"""Makes the secrets that development can do without being asked for. Production is refused them long before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import structlog

from .ports import Ids
from .settings import Settings, SettingsError
from .signer.files import KeystoreError, write_new

if TYPE_CHECKING:
    from .signer.keystore import Kdf

log = structlog.get_logger(__name__)


def provision(
    settings: Settings, ids: Ids, *, keystore: bool = True, only_keystore: bool = False, kdf: Kdf | None = None
) -> dict[str, str]:
    """Make what is missing in the data directory, and return the ``CAMBIST_*`` variables that refer to it.

    What an earlier start made is used again. ``keystore`` is for who may know its passphrase, which web may not, and
    ``only_keystore`` for who need know nothing else. Raises SettingsError in production, where secrets are configured.
    """
    folder, keys = settings.data_dir, settings.keys
    variables: dict[str, str] = {}
    if keys.application_key is None and not only_keystore:
        made = _secret_file(settings, folder / "application.key", "keys.application_key", ids)
        variables["CAMBIST_KEYS__APPLICATION_KEY"] = made
    if settings.auth.jwt_secret is None and not only_keystore:
        made = _secret_file(settings, folder / "jwt.secret", "auth.jwt_secret", ids)
        variables["CAMBIST_AUTH__JWT_SECRET"] = made
    if keystore and keys.keystore is None:
        passphrase = _secret_file(settings, folder / "keystore.passphrase", "keys.passphrase", ids)
        file = folder / "keystore.json"
        _once(file, lambda: _make_keystore(file, folder / "keystore.passphrase", ids, kdf))
        variables["CAMBIST_KEYS__KEYSTORE"] = str(file)
        variables["CAMBIST_KEYS__PASSPHRASE"] = passphrase
    return variables


def _secret_file(settings: Settings, path: Path, setting: str, ids: Ids) -> str:
    if settings.production:
        raise SettingsError(f"In production {setting} must be set.")
    path.parent.mkdir(parents=True, exist_ok=True)

    def make() -> None:
        write_new(path, ids.hex_secret().encode() + b"\n")
        log.warning("secret_made", setting=setting, file=str(path), reason="none is configured")

    _once(path, make)
    return file_reference(path)


def _make_keystore(path: Path, passphrase_file: Path, ids: Ids, kdf: Kdf | None) -> None:
    # Here, because what it needs is large and most starts make none.
    from .signer.keystore import new_keystore, save_keystore  # noqa: PLC0415

    keystore = new_keystore(ids.random_bytes)
    save_keystore(path, keystore, passphrase_file.read_text().strip(), ids.random_bytes, kdf)
    log.warning(
        "KEYSTORE MADE: whoever has these two files has the money, and whoever loses them loses it",
        keystore=str(path),
        # A name with "passphrase" in it would be taken for the secret itself, and be removed.
        opened_by=str(passphrase_file),
        reason="no keystore is configured; 'cambist keys init' makes one with a passphrase of yours",
    )


def _once(path: Path, make: Callable[[], None]) -> None:
    """Make the file unless it is there; another process that was faster has made it, too."""
    if path.exists():
        return
    try:
        make()
    except KeystoreError as error:
        if not path.exists():
            raise SettingsError(str(error)) from error


def file_reference(path: Path) -> str:
    """Return the TOML by which a ``CAMBIST_*`` variable refers to a secret in a file."""
    return f"{{ file = {msgspec.json.encode(str(path)).decode()} }}"
