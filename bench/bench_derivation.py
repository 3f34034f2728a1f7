"""How fast deposit addresses are derived from a merchant's account key, beside bip-utils and beside bare parts."""

from __future__ import annotations

import hmac
from collections.abc import Callable

from _harness import alternate, compare, rate, report, sized
from bip_utils import Bip44, Bip44Changes, Bip44Coins, Bip44Levels
from bip_utils.bip.bip32 import Bip32KeyData
from coincurve import PublicKey
from sha3 import keccak_256

from cambist_evm.family import EvmFamily

SEED = bytes(range(64))
CALLS = sized(5_000, tiny=20)


def account() -> Bip44:
    key = Bip44.FromSeed(SEED, Bip44Coins.ETHEREUM).Purpose().Coin().Account(1)
    watching = Bip44.FromExtendedKey(key.PublicKey().ToExtended(), Bip44Coins.ETHEREUM)
    assert watching.Level() == Bip44Levels.ACCOUNT
    assert watching.IsPublicOnly()
    return watching


def ours(xpub: str) -> Callable[[int], str]:
    family = EvmFamily()
    return lambda index: family.derive_address(xpub, 0, index)


def bip_utils(key: Bip44) -> Callable[[int], str]:
    """Return the watch-only way, with the account parsed and its branch derived once, as ours."""
    branch = key.Change(Bip44Changes.CHAIN_EXT)
    return lambda index: branch.AddressIndex(index).PublicKey().ToAddress()


def bare(key: Bip44, *, hashing: bool) -> Callable[[int], bytes]:
    """Return the parts that nobody can do without: HMAC, one addition of points, one Keccak. No spelling."""
    branch = key.Change(Bip44Changes.CHAIN_EXT).PublicKey()
    compressed = branch.RawCompressed().ToBytes()
    data: Bip32KeyData = branch.Bip32Key().Data()
    chain_code = data.ChainCode().ToBytes()
    point = PublicKey(compressed)
    fixed = hmac.digest(chain_code, compressed + bytes(4), "sha512")[:32]

    def with_hmac(index: int) -> bytes:
        scalar = hmac.digest(chain_code, compressed + index.to_bytes(4, "big"), "sha512")[:32]
        return keccak_256(point.add(scalar).format(compressed=False)[1:]).digest()[12:]

    def point_and_keccak(_: int) -> bytes:
        return keccak_256(point.add(fixed).format(compressed=False)[1:]).digest()[12:]

    return with_hmac if hashing else point_and_keccak


def run(derive: Callable[[int], object]) -> Callable[[], float]:
    def work() -> None:
        for index in range(CALLS):
            derive(index)

    return lambda: rate(work, CALLS)


def main() -> None:
    key = account()
    xpub = key.PublicKey().ToExtended()
    sides = {
        "ours": ours(xpub),
        "bip-utils": bip_utils(key),
        "bare": bare(key, hashing=True),
        "point": bare(key, hashing=False),
    }
    for index in (0, 1, 999):
        address = sides["ours"](index)
        assert address == sides["bip-utils"](index)
        assert address.lower() == f"0x{sides['bare'](index).hex()}"
    found = alternate({name: run(derive) for name, derive in sides.items()})
    report(
        "Deriving an address, EIP-55 spelling included",
        [
            compare("beside bip-utils, watch-only", found["ours"], found["bip-utils"], aim=3),
            compare("beside bare HMAC + coincurve add + Keccak", found["ours"], found["bare"], aim=0.7, percent=True),
            compare("beside coincurve add + Keccak alone", found["ours"], found["point"], aim=0.7, percent=True),
        ],
        note=f"{CALLS} addresses a round; the account's key is parsed once on every side",
    )


if __name__ == "__main__":
    main()
