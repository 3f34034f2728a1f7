"""What happens on which day: orders and what customers make of them, what the shop pays, and whom it watches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random

from cambist.services.exchanges.requests import BridgeOrder, SwapOrder
from cambist.services.receiving.accounts.views import AccountView
from cambist.services.receiving.payments.views import PaymentView

from .clock import SetClock
from .shop import Shop

DAYS = 30
ORDERS_A_DAY = (2, 5)
OPEN_HOURS = (7, 22)
ORDER_MINUTES, SHORT_MINUTES = 60, 5

ASSETS = (("ethereum", "USDC", 4), ("base", "USDC", 5), ("tron", "USDT", 4), ("ethereum", "ETH", 2), ("base", "ETH", 1))
"""What customers pay in: chain, token, and how often beside the others."""
PRICES = ("9.90", "19.00", "24.50", "49.90", "49.90", "79.00", "129.00", "249.00")

WAREHOUSE, DESIGNER, LANDLORD = "0x" + "5" * 40, "0x" + "6" * 40, "0x" + "8" * 40
CUSTOMER = {"ethereum": "0x" + "7" * 40, "base": "0x" + "7" * 40, "tron": "TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW"}
OWNER = "0x" + "9" * 40
PEOPLE = ("ada", "boris", "chidi", "dalia", "emre", "fatou", "goran", "hana")

Work = Callable[[], Awaitable[None]]


class Days:
    """A month of one shop, in the order in which it happens. ``tracker_secrets`` are there from the first moment on."""

    def __init__(self, shop: Shop, clock: SetClock, random: Random, now: datetime, webhook_urls: Sequence[str]) -> None:
        """``now`` is when the month ends. Each of two trackers tells one of ``webhook_urls``."""
        self._shop = shop
        self._clock = clock
        self._random = random
        self._end = now
        self._urls = webhook_urls
        self._orders = 0
        self._accounts: list[AccountView] = []
        self.tracker_secrets: list[str] = []

    def pass_(self) -> Iterator[tuple[datetime, Work]]:
        """Yield each moment and what happens at it, the earliest first; it happens when it is called."""
        first = self._end - timedelta(days=DAYS)
        yield first, self._begin
        for number in range(DAYS):
            midnight = (first + timedelta(days=number + 1)).replace(hour=0, minute=0, second=0, microsecond=0)
            for at, work in self._day(number, midnight):
                if first < at < self._end - timedelta(hours=3):
                    yield at, work
        yield self._end - timedelta(minutes=50), self._last_hour
        yield self._end - timedelta(minutes=4), self._last_minutes

    def _day(self, number: int, midnight: datetime) -> Sequence[tuple[datetime, Work]]:
        """Return what happens on a day: orders at random moments, the shop's own acts at their hours."""
        moments = [self._moment(midnight) for _ in range(self._random.randint(*ORDERS_A_DAY) + number // 10)]
        happens: list[tuple[datetime, Work]] = [(at, self._one_order) for at in moments]
        happens.append((midnight + timedelta(hours=6), self._deposits))
        for hour, every, work in (
            (8, 7, self._pay_warehouse), (9, 10, self._pay_team), (11, 9, self._swap), (12, 11, self._bridge),
            (14, 13, self._reorganisation), (15, 12, self._failing_payout), (16, 14, self._withdraw),
        ):  # fmt: skip
            if number % every == every - 1:
                happens.append((midnight + timedelta(hours=hour, minutes=17), work))
        return sorted(happens, key=lambda one: one[0])

    def _moment(self, midnight: datetime) -> datetime:
        begins, ends = OPEN_HOURS
        return midnight + timedelta(seconds=self._random.randint(begins * 3600, ends * 3600))

    async def _begin(self) -> None:
        """Make accounts for the first customers, and trackers of what they and the suppliers are sent."""
        for name in PEOPLE:
            who = {"plan": self._random.choice(["starter", "business"])}
            self._accounts.append(await self._shop.account(f"{name}@customer.example", ["ethereum", "base"], who))
        # A chain has to have a block before it can be watched from the newest on.
        for chain in ("base", "ethereum"):
            await self._shop.mine(chain, 1)
        theirs = [
            {"address": account.addresses[0].address, "label": name}
            for name, account in zip(PEOPLE, self._accounts, strict=True)
        ]
        suppliers = [{"address": WAREHOUSE, "label": "Warehouse"}, {"address": DESIGNER, "label": "Designer"}]
        for name, chain, watched, url in (
            ("Customers' addresses", "base", theirs, self._urls[0]),
            ("Suppliers", "ethereum", suppliers, self._urls[1]),
        ):
            secret = await self._shop.track(name=name, chain=chain, url=url, addresses_watched=watched)
            self.tracker_secrets.append(secret)

    async def _new_order(self, *, minutes: int = ORDER_MINUTES, asset: tuple[str, str] | None = None) -> PaymentView:
        self._orders += 1
        weights = [weight for *_, weight in ASSETS]
        chain, token = asset or self._random.choices(ASSETS, weights)[0][:2]
        who = self._random.choice(PEOPLE)
        return await self._shop.order(
            chain=chain,
            token=token,
            pricingMode="fiat",
            amount=self._random.choice(PRICES),
            fiatCurrency="eur",
            orderId=f"A-{1000 + self._orders}",
            customerName=who.capitalize(),
            customerEmail=f"{who}@customer.example",
            minutes=minutes,
        )

    async def _one_order(self) -> None:
        """Have a customer order, and pay; or pay too much or too little, or nothing; or want it back."""
        payment = await self._new_order()
        outcomes = (
            (self._pays, 74), (self._pays_too_much, 4), (self._pays_too_little, 5), (self._pays_nothing, 12),
            (self._wants_it_back, 5),
        )  # fmt: skip
        (becomes,) = self._random.choices([one for one, _ in outcomes], [weight for _, weight in outcomes])
        await becomes(payment)

    async def _pays(self, payment: PaymentView) -> None:
        await self._shop.pay(payment)

    async def _pays_too_much(self, payment: PaymentView) -> None:
        await self._shop.pay(payment, amount=_part(payment, "1.15"))

    async def _pays_too_little(self, payment: PaymentView) -> None:
        await self._shop.pay(payment, amount=_part(payment, "0.6"))

    async def _pays_nothing(self, payment: PaymentView) -> None:
        """Leave it to expire."""

    async def _wants_it_back(self, payment: PaymentView) -> None:
        await self._shop.pay(payment)
        await self._shop.refund(payment, toAddress=CUSTOMER[payment.chain], reason="returned within 14 days")

    async def _deposits(self) -> None:
        """Have some customers top up their accounts."""
        for account in self._random.sample(self._accounts, 2):
            chain = self._random.choice(["ethereum", "base", "base"])
            amount = str(self._random.choice([20, 25, 50, 100, 150]))
            await self._shop.pay_in(account, chain=chain, token="USDC", amount=amount)  # noqa: S106  a coin

    async def _pay_warehouse(self) -> None:
        await self._shop.pay_out(chain="ethereum", token="USDC", toAddress=WAREHOUSE, amount="180.00")  # noqa: S106

    async def _pay_team(self) -> None:
        rows = [{"toAddress": one, "amount": much} for one, much in ((DESIGNER, "65"), (LANDLORD, "80"))]
        await self._shop.pay_many(chain="base", token="USDC", destinations=rows)  # noqa: S106  a coin

    async def _failing_payout(self) -> None:
        await self._shop.pay_out(chain="base", token="USDC", toAddress=LANDLORD, amount="15", fails=True)  # noqa: S106

    async def _withdraw(self) -> None:
        await self._shop.withdraw(chain="base", token="USDC", toAddress=OWNER, amount="120")  # noqa: S106  a coin

    async def _swap(self) -> None:
        fields = {"srcChain": "ethereum", "srcToken": "USDC", "srcAmountRaw": str(100 * 10**6), "destToken": "ETH"}
        await self._shop.exchange(SwapOrder, **fields)

    async def _bridge(self) -> None:
        source = {"srcChain": "base", "srcToken": "USDC", "srcAmountRaw": str(60 * 10**6)}
        await self._shop.exchange(BridgeOrder, **source, destChain="ethereum", destToken="USDC")

    async def _reorganisation(self) -> None:
        """Have a block with a payment be replaced by one without it, when it is too late to pay once more."""
        payment = await self._new_order(minutes=SHORT_MINUTES, asset=("base", "USDC"))
        await self._shop.pay(payment, confirmations=0)
        self._clock.set(self._clock.now() + timedelta(minutes=2 * SHORT_MINUTES))
        await self._shop.reorganise("base", 1)

    async def _last_hour(self) -> None:
        """Leave orders that wait for their customers, and money that waits for a decision."""
        await self._pays_too_much(await self._new_order(asset=("base", "USDC")))
        for asset in (("ethereum", "USDC"), ("tron", "USDT")):
            await self._new_order(minutes=7 * 24 * 60, asset=asset)

    async def _last_minutes(self) -> None:
        """Leave what is on its way: payments that are seen, and confirmed a little, and a payout without a block."""
        confirming = await self._new_order(asset=("ethereum", "USDC"))
        await self._shop.pay(confirming, confirmations=2)
        await self._shop.pay(await self._new_order(asset=("tron", "USDT")), confirmations=0)
        await self._shop.pay_out(chain="base", token="USDC", toAddress=DESIGNER, amount="40", mined=False)  # noqa: S106


def _part(payment: PaymentView, share: str) -> str:
    """Return this share of what is expected, in so few places as any token has."""
    return format((Decimal(payment.expected_amount) * Decimal(share)).quantize(Decimal("0.000001")), "f")
