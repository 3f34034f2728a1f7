"""The signer as a process of its own: answers frames on a Unix socket, and survives whatever comes over it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from cambist.plugin import PluginError
from cambist.settings import SettingsError

from . import frames
from .peers import group_id, peer_of, refusal
from .protocol import Signer, SignerUnavailableError

CONNECTIONS_MAX = 64
FRAME_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0
SOCKET_PATH_BYTES_MAX = 100

log = structlog.get_logger(__name__)


class SignerServer:
    """Lends a signer to whoever may open the socket."""

    def __init__(self, signer: Signer, *, frame_timeout_s: float = FRAME_TIMEOUT_S) -> None:
        self._signer = signer
        self._frame_timeout_s = frame_timeout_s
        self._group: int | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Task[None]] = set()
        self._stopping = False

    @asynccontextmanager
    async def listen(self, path: Path, group: str | None = None) -> AsyncIterator[None]:
        """Serve at this path until the context ends: this account, and those in the group.

        Raises SettingsError where that cannot be.
        """
        listener, made = await asyncio.to_thread(_bind, path, group)
        self._group = None if group is None else group_id(group)
        server = await asyncio.start_unix_server(self._accept, sock=listener)
        try:
            yield
        finally:
            server.close()
            await self._finish()
            await asyncio.to_thread(_remove_own, path, made)

    async def _finish(self) -> None:
        """Let what is being answered be answered, and hang up on the rest."""
        self._stopping = True
        for task in self._waiting:
            task.cancel()
        if self._serving:
            _, late = await asyncio.wait(self._serving, timeout=STOP_TIMEOUT_S)
            for task in late:
                task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._serving) >= CONNECTIONS_MAX or not self._is_welcome(writer):
            writer.close()
            return
        self._serving.add(task)
        try:
            await self._serve(task, reader, writer)
        except (OSError, TimeoutError) as error:
            log.info("signer_connection_lost", reason=type(error).__name__)
        except Exception:  # one connection's trouble is never another's
            log.exception("signer_connection_failed")
        finally:
            self._serving.discard(task)
            writer.close()

    def _is_welcome(self, writer: asyncio.StreamWriter) -> bool:
        try:
            reason = refusal(peer_of(writer.get_extra_info("socket")), self._group)
        except OSError as error:
            reason = f"nobody says who it is: {error.strerror}"
        if reason is not None:
            log.warning("signer_peer_refused", reason=reason)
        return reason is None

    async def _serve(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while not self._stopping:
            self._waiting.add(task)
            try:
                call = await frames.read(reader, frames.CALLS, timeout_s=self._frame_timeout_s)
            except frames.FrameError as error:
                log.warning("signer_frame_refused", reason=str(error))
                await self._write(writer, frames.encode(frames.Failed(str(error), wrong=True)))
                return
            finally:
                self._waiting.discard(task)
            if call is None:
                return
            await self._write(writer, frames.encode(await self._answer(call)))

    async def _write(self, writer: asyncio.StreamWriter, frame: bytes) -> None:
        writer.write(frame)
        async with asyncio.timeout(self._frame_timeout_s):
            await writer.drain()

    async def _answer(self, call: frames.Call) -> frames.Answer:
        try:
            return await self._asked(call)
        except SignerUnavailableError as error:
            return frames.Failed(str(error))
        except (ValueError, KeyError, PluginError) as error:
            return frames.Failed(str(error), wrong=True)
        except Exception:  # a fault of ours is answered, and never with what it was about
            log.exception("signer_call_failed", call=type(call).__name__)
            return frames.Failed("The signer failed; its log says why.")

    async def _asked(self, call: frames.Call) -> frames.Answer:
        if isinstance(call, frames.KnowsTokenCall):
            return frames.TokenKnown(await self._signer.knows_token(call.chain, call.contract))
        match call:
            case frames.SignCall(requests):
                return frames.Signed(tuple(await self._signer.sign(requests)))
            case frames.VoidCall(mode, chain, references):
                return frames.AreVoided(tuple(await self._signer.void(mode, chain, references)))
            case frames.ReportCall() | frames.AnswerCall():
                return await self._of_people(call)
            case frames.XpubCall(mode, coin_type, account_index):
                return frames.Xpub(await self._signer.account_xpub(mode, coin_type, account_index))
            case frames.PublicKeyCall(mode, coin_type, path):
                return frames.PublicKey(await self._signer.public_key(mode, coin_type, path))
            case frames.LearnCall(mode, chain, account, address):
                return frames.Learned(await self._signer.learn(mode, chain, account, address))

    async def _of_people(self, call: frames.ReportCall | frames.AnswerCall) -> frames.Answer:
        if isinstance(call, frames.ReportCall):
            return frames.Reported(await self._signer.report())
        return frames.Answered(await self._signer.answer(call.answer))


def _bind(path: Path, group: str | None) -> tuple[socket.socket, tuple[int, int]]:
    """Make the socket, for its owner alone or for a group too, in the place of one that nobody serves any more.

    Return it with what tells its file from another one of this name.
    """
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES_MAX:
        raise SettingsError(f"signer.socket: {path} is too long for a socket; choose a shorter path.")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _remove_dead(path)
        # Nobody may connect before modes and group are set: listening begins afterwards.
        listener.bind(str(path))
        path.chmod(0o600)
        if group is not None:
            shutil.chown(path, group=group)
            path.chmod(0o660)
        made = _identity(path)
    except (OSError, LookupError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SettingsError(f"signer.socket: {path} cannot be made: {reason}.") from error
    except BaseException:
        listener.close()
        raise
    return listener, made


def _identity(path: Path) -> tuple[int, int]:
    # Numbers of files are used again, at once; the time of its making tells it from the next one.
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def _remove_own(path: Path, made: tuple[int, int]) -> None:
    """Remove the socket that was made, and not one of the next signer, who began while the last calls were answered."""
    with contextlib.suppress(FileNotFoundError):
        if _identity(path) == made:
            path.unlink()


def _remove_dead(path: Path) -> None:
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise SettingsError(f"signer.socket: another process answers at {path} already.")
