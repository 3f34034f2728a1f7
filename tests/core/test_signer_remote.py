"""The signer in a process of its own: the same answers, and nothing that comes over its socket ends it."""

from __future__ import annotations

import asyncio
import grp
import multiprocessing
import os
import signal
import stat
import struct
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path

import msgspec
import pytest
from coincurve import PublicKey

from cambist.settings import SettingsError
from cambist.signer.frames import ANSWERS, FRAME_BYTES_MAX, Failed, SignCall, XpubCall, encode, read
from cambist.signer.peers import Peer, peer_of, refusal
from cambist.signer.protocol import Signer, SignerUnavailableError, SignReply
from cambist.signer.remote import RemoteSigner
from cambist.signer.server import SignerServer
from cambist.testing.memory.family import spell
from cambist.testing.memory.keys import key_id
from tests.support.signing import (
    COIN_TYPE,
    DEPOSIT,
    GAS,
    KEYSTORE,
    WALLET,
    address,
    open_signer,
    request,
    signed_by,
    stranger,
)

RULES = {"hourly_caps": {"memory/USDX": "0.001"}, "fresh_address_delay_s": 60}


@asynccontextmanager
async def served(folder, signer, **options):
    path = folder / "s.sock"
    async with SignerServer(signer, **options).listen(path):
        remote = RemoteSigner(path, timeout_s=20)
        yield path, remote
        await remote.aclose()


@pytest.fixture
async def local(tmp_path, clock):
    signer = open_signer(tmp_path / "store", clock, **RULES)
    yield signer
    await signer.aclose()


def requests():
    yield request(stranger("a"), 500)
    yield request(stranger("a"), 500, price=7)
    yield request(stranger("a"), 501, sequence=1)
    yield request(address(WALLET), 9, path=DEPOSIT, own=(WALLET, GAS))
    yield request(stranger("a"), 1, path=GAS, symbol="MEM")
    yield request(stranger("b"), 1, sequence=2, purpose="withdrawal")
    yield request(stranger("a"), 1, chain="other", mode="sandbox")
    yield msgspec.structs.replace(request(stranger("a"), 1), payload=b"\0" * 999)
    yield msgspec.structs.replace(request(stranger("a"), 1), chain="nowhere")


async def test_remote_and_local_answer_the_same(tmp_path, clock, local):
    beside = open_signer(tmp_path / "beside", clock, **RULES)
    asked = list(requests())
    async with served(tmp_path, local) as (_, remote):
        theirs, ours = await remote.sign(asked), await beside.sign(asked)
        assert list(theirs) == list(ours)
        assert {reply.refusal for reply in theirs} >= {None, "HOURLY_CAP", "TARGET_TOO_FRESH", "UNREADABLE_PAYLOAD"}
        assert await remote.account_xpub("live", 60, 3) == KEYSTORE.account_xpub("live", 60, 3)
        known = await remote.learn("live", "memory", 1, stranger("b"))
        assert known == await beside.learn("live", "memory", 1, stranger("b"))
        with pytest.raises(ValueError, match="no address of memory"):
            await remote.learn("live", "memory", 1, "nobody")
        with pytest.raises(ValueError, match="asleep"):
            await remote.account_xpub("asleep", 60, 3)
    await beside.aclose()


async def test_a_public_key_is_that_of_the_address_and_is_asked_for_once(tmp_path, local):
    async with served(tmp_path, local) as (path, remote):
        for at, mode in ((DEPOSIT, "live"), (WALLET, "live"), (DEPOSIT, "sandbox")):
            found = await remote.public_key(mode, COIN_TYPE, at)
            assert found == await local.public_key(mode, COIN_TYPE, at)
            assert spell(key_id(PublicKey(found))) == address(at, mode)
        with pytest.raises(ValueError, match="asleep"):
            await remote.public_key("asleep", COIN_TYPE, DEPOSIT)
        path.rename(tmp_path / "elsewhere.sock")
        assert spell(key_id(PublicKey(await remote.public_key("live", COIN_TYPE, WALLET)))) == address(WALLET)
        await remote.aclose()
        with pytest.raises(SignerUnavailableError):
            await remote.public_key("live", COIN_TYPE, WALLET)
        (tmp_path / "elsewhere.sock").rename(path)


async def test_many_requests_go_in_several_frames(tmp_path, local):
    asked = [request(address(WALLET), 1, path=msgspec.structs.replace(DEPOSIT, index=at)) for at in range(1_203)]
    asked = [msgspec.structs.replace(one, own=(WALLET,)) for one in asked]
    async with served(tmp_path, local) as (_, remote):
        replies = await remote.sign(asked)
        assert len(replies) == 1_203
        for at in (0, 499, 500, 1_202):
            assert signed_by(asked[at], replies[at]) == address(asked[at].path)
        assert list(await remote.sign([])) == []


async def test_the_socket_is_its_owners_alone_and_is_gone_at_the_end(tmp_path, local):
    async with served(tmp_path, local) as (path, remote):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(SettingsError, match="another process answers"):
            async with SignerServer(local).listen(path):
                pass
        assert await remote.account_xpub("live", 60, 1)
    assert not path.exists()


async def test_a_socket_that_a_killed_signer_left_is_replaced(tmp_path, local):
    import socket as sockets  # noqa: PLC0415  a dead one is made here

    dead = sockets.socket(sockets.AF_UNIX)
    dead.bind(str(tmp_path / "s.sock"))
    dead.close()
    async with served(tmp_path, local) as (_, remote):
        assert await remote.account_xpub("live", 60, 1)


@pytest.mark.parametrize("path, sentence", [("x" * 120, "too long"), ("file/s.sock", "cannot be made")])
async def test_a_socket_that_cannot_be_is_told_in_a_sentence(tmp_path, local, path, sentence):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=sentence):
        async with SignerServer(local).listen(tmp_path / path):
            pass
    with pytest.raises(SettingsError, match="cannot be made"):
        async with SignerServer(local).listen(tmp_path / "s.sock", "no-such-group-here"):
            pass


GARBAGE = {
    "oversize": struct.pack(">I", FRAME_BYTES_MAX + 1),
    "largest": b"\xff" * 4 + b"x" * 1_000,
    "empty": struct.pack(">I", 0),
    "no message": struct.pack(">I", 100) + os.urandom(100),
    "another message": encode(XpubCall("live", 60, 1))[:4] + b"\x81\xa4type\xa4kill".ljust(23, b"\0"),
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "deep": struct.pack(">I", 100_000) + b"\x91" * 100_000,
    "many arrays": struct.pack(">I", 5) + b"\xdd\xff\xff\xff\xff",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
async def test_garbage_ends_its_connection_and_nothing_else(tmp_path, local, garbage):
    async with served(tmp_path, local, frame_timeout_s=2) as (path, remote):
        assert await remote.account_xpub("live", 60, 1)
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(garbage)
        writer.write_eof()
        answer = await read(reader, ANSWERS, timeout_s=5)
        assert isinstance(answer, Failed)
        assert await reader.read() == b""
        writer.close()
        assert (await remote.sign([request(stranger("a"), 1)]))[0].signature


async def test_a_request_out_of_bounds_is_refused_whole(tmp_path, local):
    async with served(tmp_path, local) as (path, _):
        for bad in (
            SignCall((msgspec.structs.replace(request(stranger("a"), 1), payload=b"\0" * (2**17 + 1)),)),
            SignCall((request(stranger("a"), 1),) * 501),
            XpubCall("live", -1, 0),
        ):
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(encode(bad))
            answer = await read(reader, ANSWERS, timeout_s=5)
            assert isinstance(answer, Failed)
            assert answer.wrong
            writer.close()


async def test_who_writes_half_a_frame_or_reads_nothing_is_hung_up_on(tmp_path, local):
    async with served(tmp_path, local, frame_timeout_s=0.2) as (path, remote):
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"\0\0")
        assert isinstance(await read(reader, ANSWERS, timeout_s=5), Failed)
        writer.close()
        silent = await asyncio.open_unix_connection(str(path))
        await asyncio.sleep(0.5)
        assert await remote.account_xpub("live", 60, 1)
        silent[1].close()


async def test_without_a_signer_nothing_is_signed_and_it_is_found_again(tmp_path, local):
    remote = RemoteSigner(tmp_path / "s.sock", timeout_s=5)
    with pytest.raises(SignerUnavailableError, match="does not answer"):
        await remote.sign([request(stranger("a"), 1)])
    for _ in range(2):  # a connection that died in between is made anew
        async with SignerServer(local).listen(tmp_path / "s.sock"):
            assert (await remote.sign([request(stranger("a"), 1)]))[0].signature
    await remote.aclose()


class Slow(Signer):
    """Takes its time, and counts how many it signs at once."""

    async def account_xpub(self, *_):
        raise RuntimeError("the seed is abandon abandon")

    async def sign(self, requests):
        await asyncio.sleep(0.3)
        return [SignReply(signature=one.payload) for one in requests]

    async def public_key(self, *_):
        raise SignerUnavailableError("It is asleep.")

    async def void(self, *_):
        raise SignerUnavailableError("The store is full.")

    async def learn(self, *_):
        raise SignerUnavailableError("The store is full.")

    async def report(self):
        raise SignerUnavailableError("The store is full.")

    async def answer(self, *_):
        raise SignerUnavailableError("The store is full.")

    async def knows_token(self, *_):
        return False


async def test_a_call_that_was_given_up_is_never_answered_to_the_next(tmp_path):
    async with served(tmp_path, Slow()) as (_, remote):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await remote.sign([request(stranger("a"), 1)])
        asked = request(stranger("b"), 2)
        assert (await remote.sign([asked]))[0].signature == asked.payload


async def test_failures_are_told_apart_and_ours_say_nothing(tmp_path):
    async with served(tmp_path, Slow()) as (_, remote):
        with pytest.raises(SignerUnavailableError, match=r"store is full"):
            await remote.learn("live", "memory", 1, "x")
        with pytest.raises(SignerUnavailableError, match=r"^The signer failed; its log says why\.$"):
            await remote.account_xpub("live", 60, 1)


async def test_stopping_lets_what_was_begun_be_answered(tmp_path):
    remote = RemoteSigner(tmp_path / "s.sock")
    asked = request(stranger("a"), 1)
    async with SignerServer(Slow()).listen(tmp_path / "s.sock"):
        task = asyncio.create_task(remote.sign([asked]))
        idle = await asyncio.open_unix_connection(str(tmp_path / "s.sock"))
        await asyncio.sleep(0.1)
    assert (await task)[0].signature == asked.payload
    idle[1].close()
    await remote.aclose()


async def test_a_signer_that_ends_leaves_the_socket_of_the_next_one_alone(tmp_path, local):
    """Of two that overlap, the first still answers what was begun when the second begins to listen."""
    path = tmp_path / "s.sock"
    asking, remote = RemoteSigner(path), RemoteSigner(path)
    async with AsyncExitStack() as second:
        async with SignerServer(Slow()).listen(path):
            task = asyncio.create_task(asking.sign([request(stranger("a"), 1)]))
            await asyncio.sleep(0.1)
            path.unlink()  # as whoever finds that nobody listens there any more does
            await second.enter_async_context(SignerServer(local).listen(path))
        assert (await task)[0].signature
        assert (await remote.sign([request(stranger("a"), 1)]))[0].signature
    assert not path.exists()
    await asking.aclose()
    await remote.aclose()


PROGRAM = """
import asyncio, sys
from pathlib import Path
from cambist.ports import SystemClock
from cambist.signer.server import SignerServer
from tests.support.signing import open_signer

async def main():
    folder = Path(sys.argv[1])
    signer = open_signer(folder / "store", SystemClock(), hourly_caps={"memory/USDX": "0.001"})
    async with SignerServer(signer).listen(folder / "s.sock"):
        print("ready", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


async def start_signer(folder: Path) -> asyncio.subprocess.Process:
    """Start a signer in a process, and return once it listens. The first logs that it made a store."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, str(folder), stdout=subprocess.PIPE)
    while (line := await process.stdout.readline()) != b"ready\n":
        assert b"signer_store_made" in line
    return process


async def test_a_signer_that_is_killed_in_the_middle_forgets_nothing_that_left_it(tmp_path):
    """Killed again and again, it never gives out more than its cap, and answers again for what it answered."""
    remote, given = RemoteSigner(tmp_path / "s.sock", timeout_s=20), {}
    for turn in range(4):
        process = await start_signer(tmp_path)

        async def take(turn: int = turn) -> None:
            for at in count(turn * 1_000_000):  # until the signer dies
                asked = request(stranger("a"), 10, sequence=at)
                (reply,) = await remote.sign([asked])
                if reply.signature:
                    given[asked.payload] = asked, reply.signature

        task = asyncio.create_task(take())
        await asyncio.sleep(0.02 * (turn + 1))
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        with pytest.raises(SignerUnavailableError):
            await task
    process = await start_signer(tmp_path)
    more = [request(stranger("a"), 10, sequence=9_000_000 + at) for at in range(200)]
    given |= {
        asked.payload: (asked, reply.signature)
        for asked, reply in zip(more, await remote.sign(more), strict=True)
        if reply.signature
    }
    assert 90 < len(given) <= 100
    old, signature = next(iter(given.values()))
    assert (await remote.sign([old]))[0].signature == signature
    process.kill()
    await process.wait()
    await remote.aclose()


OURS = grp.getgrgid(os.getegid()).gr_name
STRANGER = 54_321


def test_the_same_account_and_the_group_are_talked_to_and_nobody_else():
    me = os.geteuid()
    assert refusal(Peer(me, frozenset({STRANGER})), None) is None
    assert refusal(Peer(STRANGER, frozenset({7, 8})), 8) is None
    for groups, group in ((frozenset({7}), 8), (frozenset({7}), None), (frozenset(), 0)):
        assert f"user {STRANGER}" in refusal(Peer(STRANGER, groups), group)


async def test_the_kernel_says_who_is_at_the_other_end(tmp_path, local):
    async with served(tmp_path, local) as (_, remote):
        await remote.account_xpub("live", COIN_TYPE, 1)
        peer = peer_of(remote._streams[1].get_extra_info("socket"))
        assert (peer.uid, peer.groups) == (os.geteuid(), frozenset({os.getegid(), *os.getgroups()}))


def _ask_as(uid, groups, folder, group, answers):
    """Ask for an account key as somebody else, of whom only folder and socket know."""
    os.chdir(folder)
    os.setgroups(groups)
    os.setgid(uid)
    os.setuid(uid)

    async def ask() -> str:
        remote = RemoteSigner(Path("s.sock"), group=group, timeout_s=20)
        try:
            return await remote.account_xpub("live", COIN_TYPE, 1)
        except SignerUnavailableError as error:
            return str(error)
        finally:
            await remote.aclose()

    answers.put(asyncio.run(ask()))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize(
    "served_to, groups, believes, told",
    [
        (OURS, (os.getegid(),), OURS, "xpub"),
        (None, (), OURS, "does not answer"),
        (OURS, (), OURS, "does not answer"),
        (OURS, (STRANGER + 1,), OURS, "does not answer"),
        (OURS, (os.getegid(),), None, "it runs as user 0, who is neither this one"),
    ],
)
async def test_another_account_gets_nothing_though_the_socket_is_open_to_all(
    tmp_path, local, served_to, groups, believes, told
):
    """And it believes no signer of another account, whose public keys would give another's addresses."""
    tmp_path.chmod(0o711)
    fork = multiprocessing.get_context("fork")
    answers, before = fork.Queue(), asyncio.all_tasks()
    async with SignerServer(local).listen(tmp_path / "s.sock", served_to):
        (tmp_path / "s.sock").chmod(0o666)
        other = fork.Process(target=_ask_as, args=(STRANGER, groups, tmp_path, believes, answers))
        other.start()
        answer = await asyncio.to_thread(answers.get, timeout=30)
        other.join()
        async with asyncio.timeout(60):
            # Its connection may be taken only now, and be closed by the task that it was given.
            await asyncio.sleep(0.05)
            while asyncio.all_tasks() - before:  # noqa: ASYNC110  nothing tells of it
                await asyncio.sleep(0.01)
    assert told in answer
