"""Server-side request forgery: about a hundred ways to aim a webhook inside, and a canary that must stay silent."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from itertools import cycle

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from msgspec.structs import replace

from cambist.ports import SystemClock
from cambist.services.errors import InvalidError
from cambist.services.webhooks.sender import PREVIEW_CHARS_MAX, Message, open_sender
from cambist.services.webhooks.urls import check_webhook_url, is_public_address, webhook_url_refusal
from cambist.settings import WebhookTargets
from tests.support.webhooks import SECRET, canary, receiver

MESSAGE = Message(id="evt_1", event="payment.paid", body=b'{"event":"payment.paid"}', secret=SECRET)

INSIDE = [
    # Loopback and "this network", as browsers and libraries of all ages spell them.
    "http://127.0.0.1:{port}/", "http://127.0.0.1.:{port}/", "http://127.1:{port}/", "http://127.0.1:{port}/",
    "http://127.255.255.254:{port}/", "http://0.0.0.0:{port}/", "http://0:{port}/", "http://0.0.0.1:{port}/",
    "http://2130706433:{port}/", "http://2130706433.:{port}/", "http://0x7f000001:{port}/", "http://0x7f.1:{port}/",
    "http://0x7f.0.0.1:{port}/", "http://0X7F.0X0.0X0.0X1:{port}/", "http://0177.0.0.1:{port}/",
    "http://017700000001:{port}/", "http://0177.0x0.0.1:{port}/", "http://127.000.000.001:{port}/",
    "http://4294967297:{port}/", "http://127.0.0.1%20:{port}/", "http://%31%32%37.0.0.1:{port}/",
    "http://127%2e0%2e0%2e1:{port}/", "http://\uff11\uff12\uff17.0.0.1:{port}/", "http://127。0。0。1:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/", "HTTP://127.0.0.1:{port}/", "https://127.0.0.1:{port}/",
    "http://localhost:{port}/", "http://LOCALHOST:{port}/", "http://localhost.:{port}/",
    "http://shop.localhost:{port}/", "http://localhost.localdomain:{port}/", "http://\uff4cocalhost:{port}/",
    # IPv6, and IPv4 inside of it.
    "http://[::1]:{port}/", "http://[::]:{port}/", "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/", "http://[::ffff:7f00:1]:{port}/", "http://[0:0:0:0:0:ffff:127.0.0.1]:{port}/",
    "http://[::127.0.0.1]:{port}/", "http://[64:ff9b::127.0.0.1]:{port}/", "http://[64:ff9b::7f00:1]:{port}/",
    "http://[64:ff9b:1::7f00:1]:{port}/", "http://[2002:7f00:1::]:{port}/", "http://[2001:0:7f00:1::]:{port}/",
    "http://[::1%25lo]:{port}/", "http://[fe80::1%25eth0]:{port}/", "http://[::ffff:0:127.0.0.1]:{port}/",
    "http://[fc00::1]:{port}/", "http://[fd00:ec2::254]:{port}/", "http://[fe80::1]:{port}/", "http://[fec0::1]:{port}/",
    "http://[ff02::1]:{port}/", "http://[100::1]:{port}/", "http://[2001:db8::1]:{port}/", "http://[3fff::1]:{port}/",
    "http://[5f00::1]:{port}/", "http://[::ffff:169.254.169.254]:{port}/", "http://[v1.127.0.0.1]:{port}/",
    # Private, shared, reserved, and the clouds' metadata.
    "http://10.0.0.1:{port}/", "http://10.255.255.255:{port}/", "http://172.16.0.1:{port}/",
    "http://172.31.255.255:{port}/", "http://192.168.0.1:{port}/", "http://192.168.255.255:{port}/",
    "http://100.64.0.1:{port}/", "http://100.127.255.255:{port}/", "http://100.100.100.200:{port}/",
    "http://169.254.169.254:80/latest/meta-data/", "http://169.254.169.254.:80/", "http://0xa9fea9fe:80/",
    "http://2852039166:80/", "http://0251.0376.0251.0376:80/", "http://metadata.google.internal:80/",
    "http://168.63.129.16:80/", "http://192.0.0.192:80/", "http://192.0.2.1:{port}/", "http://192.88.99.1:{port}/",
    "http://198.18.0.1:{port}/", "http://198.19.255.255:{port}/", "http://198.51.100.1:{port}/",
    "http://203.0.113.1:{port}/", "http://224.0.0.1:{port}/", "http://239.255.255.255:{port}/",
    "http://240.0.0.1:{port}/", "http://255.255.255.255:{port}/",
    # Parsers that disagree about where the host is.
    "http://user@127.0.0.1:{port}/", "http://user:pass@127.0.0.1:{port}/", "http://shop.example@127.0.0.1:{port}/",
    "http://shop.example:80@127.0.0.1:{port}/", "http://shop.example%40127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@shop.example/", "http://shop.example\\@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}#@shop.example/", "http://127.0.0.1:{port}?@shop.example/",
    "http:///127.0.0.1:{port}/", "http:127.0.0.1:{port}/", "http:/127.0.0.1:{port}/", "//127.0.0.1:{port}/",
    "http://127.0.0.1:{port}/\r\nHost: shop.example", "http://127.0.0.1:{port}/\x00", " http://127.0.0.1:{port}/",
    "http://\t127.0.0.1:{port}/", "http://127.0.0.1 :{port}/", "http://[127.0.0.1]:{port}/", "http://:{port}/",
    # Other schemes and other services.
    "gopher://127.0.0.1:{port}/_POST", "file:///etc/passwd", "ftp://127.0.0.1:{port}/", "dict://127.0.0.1:{port}/",
    "unix:///run/docker.sock", "http+unix://%2frun%2fdocker.sock/", "ws://127.0.0.1:{port}/", "javascript:alert(1)",
    "data:text/plain,hello", "", "http://", "shop.example", "http://shop.example:22/", "http://shop.example:25/",
    "http://shop.example:0/", "http://shop.example:65536/", "http://shop.example:-80/", "http://127.0.0.1.nip.io:{port}/",
]  # fmt: skip


class ScriptedResolver(AbstractResolver):
    """A name server that is in the attacker's hands: each look-up has its next answer."""

    def __init__(self, *answers: str) -> None:
        self.answers = cycle(answers)
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        del family
        self.asked.append(host)
        address = next(self.answers)
        kind = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=0)]

    async def close(self) -> None:
        pass


PUBLIC = WebhookTargets(allow_private=False, allow_http=True)


def sender(resolver: AbstractResolver | None = None, *, allow_private: bool = False, timeout_ms: int = 2_000):
    targets = replace(PUBLIC, allow_private=allow_private)
    return open_sender(clock=SystemClock(), timeout_ms=timeout_ms, targets=targets, resolver=resolver)


def test_the_table_is_long_enough_to_mean_something() -> None:
    assert len(set(INSIDE)) == len(INSIDE) >= 100


async def test_no_url_of_the_table_makes_a_single_connection_inside() -> None:
    async with canary() as (port, connections), sender(ScriptedResolver("127.0.0.1")) as guarded:
        for url in INSIDE:
            result = await guarded.send_once(url.replace("{port}", str(port)), MESSAGE)
            assert (result.delivered, result.status_code) == (False, None), url
            assert result.error, url
    assert connections == []


@pytest.mark.parametrize("url", [url for url in INSIDE if "nip.io" not in url])
def test_each_is_refused_when_a_merchant_enters_it(url: str) -> None:
    with pytest.raises(InvalidError) as refused:
        check_webhook_url(url.replace("{port}", "8080"), PUBLIC)
    assert refused.value.details[0].field == "webhookUrl"


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example/hooks?id=1#x",
        "http://shop.example",
        "https://shop.example:8443/",
        "HTTPS://Shop.Example/",
        "https://xn--mnchen-3ya.example/",
        "http://93.184.215.14:3000/",
        "http://[2606:4700::6810:84e5]/",
        "https://under_score.shop.example/a%20b",
    ],
)
def test_what_merchants_really_use_is_accepted(url: str) -> None:
    check_webhook_url(url, PUBLIC)


async def test_where_https_is_insisted_on_no_url_over_http_is_taken_nor_one_from_before_called() -> None:
    targets = WebhookTargets(allow_private=True, allow_http=False)
    check_webhook_url("https://shop.example/hook", targets)
    for url in ("http://shop.example/hook", "HTTP://shop.example/"):
        with pytest.raises(InvalidError, match="must be https"):
            check_webhook_url(url, targets)
    async with receiver() as merchant, open_sender(clock=SystemClock(), timeout_ms=2_000, targets=targets) as strict:
        result = await strict.send_once(merchant.url, MESSAGE)
        assert (result.delivered, result.status_code, merchant.received) == (False, None, [])
    assert result.error == "the URL must be https: what is sent over http can be read and dropped on the way"


@pytest.mark.parametrize("name", ["a..b", ".shop.example", f"{'a' * 64}.example", ".".join(["a" * 60] * 5)])
def test_a_name_that_no_name_server_could_know_is_refused(name: str) -> None:
    with pytest.raises(InvalidError, match="names a host that is none"):
        check_webhook_url(f"https://{name}/hook", PUBLIC)


@pytest.mark.parametrize(
    "answer", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "169.254.169.254", "fe80::1%1", "x"]
)
async def test_a_name_that_resolves_inside_is_refused_when_connecting(answer: str) -> None:
    async with canary() as (port, connections), sender(ScriptedResolver(answer)) as guarded:
        result = await guarded.send_once(f"http://shop.example:{port}/", MESSAGE)
    assert result.error == "cannot connect: the target's address is not public"
    assert connections == []


async def test_a_name_that_rebinds_between_check_and_use_is_refused() -> None:
    """Whoever looks the name up first sees a public address; the connection would go elsewhere."""
    resolver = ScriptedResolver("93.184.215.14", "127.0.0.1")
    async with canary() as (port, connections), sender(resolver) as guarded:
        url = f"http://rebind.example:{port}/"
        assert webhook_url_refusal(url, PUBLIC) is None
        [checked] = await resolver.resolve("rebind.example", port)
        assert is_public_address(checked["host"])
        assert not (await guarded.send_once(url, MESSAGE)).delivered
    assert resolver.asked == ["rebind.example"] * 2
    assert connections == []


async def test_a_redirect_inside_is_a_failure_and_not_followed() -> None:
    async with canary() as (port, connections), receiver() as merchant, sender(allow_private=True) as open_door:

        async def redirect(request: web.Request) -> web.Response:
            return web.Response(status=status, headers={"Location": f"http://127.0.0.1:{port}/latest/meta-data/"})

        merchant.answer = redirect
        for status in (301, 302, 303, 307, 308):
            result = await open_door.send_once(merchant.url, MESSAGE)
            assert (result.delivered, result.status_code) == (False, status)
            assert result.error == f"HTTP {status}: redirects are not followed"
    assert connections == []


async def test_proxies_and_credentials_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login us password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with canary() as (port, connections), receiver() as merchant:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        async with sender(allow_private=True) as open_door:
            assert (await open_door.send_once(merchant.url, MESSAGE)).delivered
    assert connections == []
    assert "Authorization" not in merchant.received[0].headers


async def test_cookies_of_one_answer_do_not_come_back() -> None:
    async with receiver() as merchant, sender(allow_private=True) as open_door:

        async def bake(request: web.Request) -> web.Response:
            return web.Response(headers={"Set-Cookie": "session=1"})

        merchant.answer = bake
        for _ in range(2):
            await open_door.send_once(merchant.url, MESSAGE)
    assert all("Cookie" not in request.headers for request in merchant.received)


async def test_a_long_answer_is_cut_and_its_nul_bytes_are_taken_out() -> None:
    async with receiver() as merchant, sender(allow_private=True) as open_door:

        async def flood(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            for _ in range(200):
                await response.write(b"\x00\xff" + "é".encode() * 50_000)
            return response

        merchant.answer = flood
        result = await open_door.send_once(merchant.url, MESSAGE)
    assert result.delivered
    assert result.response_preview is not None
    assert result.response_preview.startswith("\N{REPLACEMENT CHARACTER}" * 2 + "éé")
    assert len(result.response_preview) == PREVIEW_CHARS_MAX
    assert "\x00" not in result.response_preview


@pytest.mark.slow
async def test_an_answer_that_never_ends_is_left_after_a_moment_and_counts_by_its_status() -> None:
    async with receiver() as merchant, sender(allow_private=True) as open_door:
        statuses = [200, 500]

        async def drip(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(status=statuses.pop(0))
            await response.prepare(request)
            await response.write(b"wait for it")
            await asyncio.sleep(5)
            return response

        merchant.answer = drip
        for delivered in (True, False):
            result = await open_door.send_once(merchant.url, MESSAGE)
            assert (result.delivered, result.response_preview) == (delivered, "wait for it")
            assert 900 < result.duration_ms < 1_900


@pytest.mark.slow
async def test_a_receiver_that_never_answers_times_out() -> None:
    async with sender(allow_private=True, timeout_ms=300) as open_door:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            result = await open_door.send_once(f"http://127.0.0.1:{silent.getsockname()[1]}/", MESSAGE)
    assert result.error == "no answer within 300 ms"
    assert 250 < result.duration_ms < 1_000


async def test_a_few_interim_answers_may_come_before_the_one_that_counts() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 8 + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, sender(allow_private=True) as open_door:
        result = await open_door.send_once(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", MESSAGE)
    assert (result.status_code, result.error) == (200, None)


@pytest.mark.slow
async def test_interim_answers_without_end_keep_nothing_else_waiting() -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        with suppress(OSError):
            while True:
                writer.write(b"HTTP/1.1 103 \r\n\r\n" * 1_000)
                await writer.drain()
                await asyncio.sleep(0)

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    async with server, sender(allow_private=True, timeout_ms=5_000) as open_door:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        results = await asyncio.gather(*(open_door.send_once(url, MESSAGE) for _ in range(10)))
    for result in results:
        assert (result.delivered, result.status_code) == (False, None)
        assert result.error == "the answer is not HTTP as it should be (ClientResponseError)"
        assert result.duration_ms < 4_000


async def test_what_is_no_http_is_an_error_like_any_other() -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(answers.pop())
        writer.close()

    answers = [b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", b"220 mail ready\r\n", b""]
    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, sender(allow_private=True) as open_door:
        for url in [f"http://127.0.0.1:{port}/"] * 3 + [f"https://127.0.0.1:{port}/"]:
            if not answers:
                answers.append(b"not TLS")
            result = await open_door.send_once(url, MESSAGE)
            assert (result.delivered, result.status_code) == (False, None)
            assert result.error
            assert "127.0.0.1" not in result.error


async def test_a_test_delivery_says_so_in_its_header() -> None:
    async with receiver() as merchant, sender(allow_private=True) as open_door:
        message = Message(id="evt_test_1", event="payment.paid", body=b"{}", secret=SECRET, is_test=True)
        result = await open_door.send_once(merchant.url, message)
    assert merchant.received[0].headers["X-Webhook-Test"] == "true"
    assert merchant.received[0].headers["X-Webhook-Signature"] == result.signature
    assert merchant.received[0].headers["X-Webhook-Timestamp"] == str(result.timestamp_ms)
    merchant.received[0].verify(SECRET)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.215.14", "172.32.0.1", "100.128.0.1", "2606:4700::1", "::ffff:8.8.8.8"]
)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public_address(address)


@pytest.mark.parametrize(
    "port, is_possible", [(444, True), (80, True), (1023, True), (8443, True), (22, False), (25, False), (993, False)]
)
def test_ports_of_other_services_are_refused(port, is_possible):
    refusal = webhook_url_refusal(f"https://shop.example:{port}/hook", PUBLIC)
    assert (refusal is None) is is_possible
