"""A set of keys in some 20 bits each: never wrong about a key that it has, seldom about one that it has not."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from rbloom import Bloom
from xxhash import xxh3_64_intdigest

KEY_VERSION = 1
"""How a key becomes a number and the number finds its bits. Filters of another version are of no use."""

SEED_BYTES = 8
SEGMENTS = 64
"""A layer is this many Bloom filters, so that it is copied in small pieces. A power of two."""
LAYER_KEYS_MIN = 1 << 17
GROWTH_PARTS = 4
"""A new layer has room for a quarter of what there is: at most 1.25 times the memory that all keys need."""
LAYERS_WANTED_MAX = 4
ERRORS_PER_LAYER = 2e-4
ERRORS_MAX = ERRORS_PER_LAYER * (LAYERS_WANTED_MAX + 1)
"""The share of strange keys that a filter is built to say yes to, with as many layers as are wanted and one more."""

_SEGMENT_OF = SEGMENTS - 1


class Layer(Struct, frozen=True, kw_only=True):
    """The measures of a layer: for how many keys it has room, and the bytes of each of its segments."""

    room: int
    segment_bytes: int


class AddressFilter:
    """Answers ``key in filter``: always yes for a key that was added, and hardly ever for another.

    It only grows. When its newest layer is full, another one is laid on top, so that it never errs more often than it
    should; each layer makes looking up slower. With more than ``LAYERS_WANTED_MAX`` it is ``crowded``, and worth
    building anew in one layer. The seed keys the hash: who does not know it cannot make addresses that are taken for
    others.
    """

    def __init__(self, seed: int, *, room: int = 0) -> None:
        """Make an empty one, whose first layer has room for so many keys and never fewer than ``LAYER_KEYS_MIN``."""
        self.seed = seed
        self._layers: tuple[Sequence[Bloom], ...] = ()
        self._rooms: list[int] = []
        self._left = 0
        self._count = 0
        self._first_room = max(LAYER_KEYS_MIN, room)

    def __contains__(self, key: object, /) -> bool:
        # This runs once or twice for each transfer on the chain.
        number = xxh3_64_intdigest(key, self.seed)  # type: ignore[arg-type]  # what is no key has no hash
        for segments in self._layers:  # noqa: SIM110  a generator takes as long again
            if number in segments[number & _SEGMENT_OF]:
                return True
        return False

    def __len__(self) -> int:
        """Return how many keys it has, but for the few that it took for known when they came."""
        return self._count

    @property
    def crowded(self) -> bool:
        return len(self._layers) > LAYERS_WANTED_MAX

    @property
    def layers(self) -> list[Layer]:
        return [
            Layer(room=room, segment_bytes=len(segments[0].save_bytes()))
            for room, segments in zip(self._rooms, self._layers, strict=True)
        ]

    @property
    def size_bytes(self) -> int:
        """What its bits take in memory; all else is next to nothing."""
        return sum(segment.size_in_bits for segments in self._layers for segment in segments) // 8

    def update(self, keys: Iterable[bytes]) -> None:
        """Add keys. Those that are there already cost nothing but time."""
        seed, hashed = self.seed, xxh3_64_intdigest
        for key in keys:
            number = hashed(key, seed)
            segment = number & _SEGMENT_OF
            for segments in self._layers:
                if number in segments[segment]:
                    break
            else:
                if self._left == 0:
                    self._grow()
                self._layers[-1][segment].add(number)
                self._left -= 1
                self._count += 1

    def _grow(self) -> None:
        room = max(LAYER_KEYS_MIN, self._count // GROWTH_PARTS) if self._layers else self._first_room
        # The hash is made once for all layers; rbloom only takes what it can call.
        segments = [Bloom(-(-room // SEGMENTS), ERRORS_PER_LAYER, operator.index) for _ in range(SEGMENTS)]
        self._rooms.append(room)
        self._layers += (segments,)
        self._left = room

    def pieces(self, layers: int) -> Iterator[bytes]:
        """Copy the first so many layers, a segment at a time. Keys that are added meanwhile do no harm."""
        for segments in self._layers[:layers]:
            for segment in segments:
                yield segment.save_bytes()

    @classmethod
    def of_pieces(cls, seed: int, count: int, layers: Sequence[Layer], pieces: Iterable[bytes]) -> AddressFilter:
        """Return the filter that ``pieces`` were copied from. They must be whole: a wrong bit would be a miss."""
        made, following = cls(seed), iter(pieces)
        for _ in layers:
            made._layers += ([Bloom.load_bytes(next(following), operator.index) for _ in range(SEGMENTS)],)
        made._rooms = [layer.room for layer in layers]
        made._count = count
        made._left = max(0, sum(made._rooms) - count)
        return made
