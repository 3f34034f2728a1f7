"""Receivers whose TLS is broken: the merchant reads what to mend on their server, and is told once it is mended."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp.connector
import pytest

from cambist.ports import SystemClock
from cambist.services.webhooks.delivery_log import get_delivery
from cambist.services.webhooks.sender import Message, open_sender
from cambist.settings import WebhookTargets
from tests.support.certificates import certificate
from tests.support.webhooks import SECRET, deliverer, make_project, paid, put

HERE = "127.0.0.1"
MESSAGE = Message(id="evt_1", event="payment.paid", body=b"{}", secret=SECRET)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
CLOSED = "the receiver closed the connection while it was set up"
STRANGE = "the certificate's issuer is not known: the receiver must send its intermediate certificates, too"


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    """Be the one authority that everybody knows."""
    return certificate(tmp_path_factory.mktemp("public"), "authority")


@pytest.fixture(autouse=True)
def _known(public, monkeypatch):
    context = ssl.create_default_context(cafile=str(public.paths[0]))
    monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", context)


@asynccontextmanager
async def serving(take, shown=None, port=0) -> AsyncIterator[int]:
    """Serve on a port, with TLS where a certificate is shown."""
    tls = None
    if shown is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*shown.paths)

    async def talk(reader, writer):
        with suppress(OSError, asyncio.IncompleteReadError):
            await take(reader, writer)
        writer.close()

    server = await asyncio.start_server(talk, HERE, port, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def answer(reader, writer):
    head = await reader.readuntil(b"\r\n\r\n")
    size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
    await reader.readexactly(size)
    writer.write(ANSWER)


async def said(port, host=HERE):
    targets = WebhookTargets(allow_private=True, allow_http=True)
    async with open_sender(clock=SystemClock(), timeout_ms=5_000, targets=targets) as sender:
        result = await sender.send_once(f"https://{host}:{port}/", MESSAGE)
    assert (result.status_code == 200) == result.delivered
    return result.error


def middle(public, folder):
    return certificate(folder, HERE, certificate(folder, "middle", public))


def without_middle(public, folder):
    shown = middle(public, folder)
    own = shown.paths[0].read_bytes().split(b"-----BEGIN")[1]
    shown.paths[0].write_bytes(b"-----BEGIN" + own)
    return shown


SHOWN = {
    "what is right": (middle, None),
    "expired": (
        lambda public, folder: certificate(folder, HERE, public, days=(-9, -1)),
        "the certificate has expired",
    ),
    "not yet valid": (
        lambda public, folder: certificate(folder, HERE, public, days=(1, 9)),
        "the certificate is not valid yet",
    ),
    "another name": (
        lambda public, folder: certificate(folder, "shop.example", public),
        "the certificate is for another host than the URL names",
    ),
    "self-signed": (
        lambda _, folder: certificate(folder, HERE),
        "the certificate is self-signed: it must come from a public authority",
    ),
    "of an own authority": (
        lambda _, folder: certificate(folder, HERE, certificate(folder, "own")),
        "the certificate comes from an authority that is not public",
    ),
    "without what is between": (without_middle, STRANGE),
}


@pytest.mark.parametrize("make, told", SHOWN.values(), ids=SHOWN)
async def test_what_is_wrong_with_a_certificate_is_said(public, tmp_path, make, told):
    async with serving(answer, make(public, tmp_path)) as port:
        assert await said(port) == told


async def test_a_certificate_for_another_name_than_the_urls_is_told_of_too(public, tmp_path):
    async with serving(answer, certificate(tmp_path, "shop.example", public)) as port:
        assert await said(port, "localhost") == "the certificate is for another host than the URL names"


def after_hello(data):
    """Answer the beginning of TLS with this, and close."""

    async def take(reader, writer):
        await reader.read(100)
        writer.write(data)
        await writer.drain()

    return take


def alert(number):
    return after_hello(bytes([21, 3, 3, 0, 2, 2, number]))


async def half_close(reader, writer):
    await reader.read(100)
    writer.write_eof()
    await reader.read()


BROKEN = {
    "closes": (after_hello(b""), CLOSED),
    "closes one half": (half_close, CLOSED),
    "speaks HTTP": (after_hello(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "the receiver speaks no TLS on this port"),
    "is too old": (alert(70), "the receiver offers no TLS as new as 1.2"),
    "knows no such name": (alert(112), "the receiver knows no host of the URL's name"),
    "refuses": (alert(40), "the TLS connection failed: sslv3 alert handshake failure"),
}


@pytest.mark.parametrize("take, told", BROKEN.values(), ids=BROKEN)
async def test_a_receiver_with_which_no_tls_comes_about_is_told_of_in_words(take, told):
    async with serving(take) as port:
        assert await said(port) == told


async def test_tls_that_ends_before_an_answer_is_no_delivery(public, tmp_path):
    async def leave(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER[:20])

    async with serving(leave, certificate(tmp_path, HERE, public)) as port:
        assert await said(port) == "the receiver closed the connection without an answer"


async def test_an_event_arrives_once_the_certificate_was_renewed(db, clock, ids, public, tmp_path):
    project = await make_project(db, ids)
    expired = certificate(tmp_path, HERE, public, days=(-9, -1))
    async with deliverer(db, clock) as worker:
        async with serving(answer, expired) as port:
            await put(db, [paid(project, f"https://{HERE}:{port}/")], ids=ids, clock=clock)
            assert await worker.deliver_due() == 1
        clock.advance(1)
        async with serving(answer, certificate(tmp_path, HERE, public), port):
            assert await worker.deliver_due() == 1
    async with db.transaction() as conn:
        (delivery_id,) = (await conn.exec_driver_sql("SELECT delivery_id FROM webhook_deliveries")).one()
        found = await get_delivery(conn, project[0], delivery_id)
    assert [one.error for one in found.attempts] == ["the certificate has expired", None]
    assert found.status == "delivered"
