"""The filter of addresses: what it has it never denies, however it grows; its file is whole and ours, or refused."""

import os
import random
import stat

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cambist.services.receiving.deposits import address_filter, filter_snapshots
from cambist.services.receiving.deposits.address_filter import ERRORS_MAX, AddressFilter
from cambist.services.receiving.deposits.filter_snapshots import Header, Origin, SnapshotError, Witness

ORIGIN = Origin(system_identifier="7", timeline="00000001", database=5, files=[10, 11])
WITNESS = Witness(address="0xabc", xid=900)


def keys_of(seed, count):
    draw = random.Random(seed)
    return [draw.randbytes(20) for _ in range(count)]


@pytest.fixture
def small_layers(monkeypatch):
    monkeypatch.setattr(address_filter, "LAYER_KEYS_MIN", 256)


@pytest.fixture
def middling_layers(monkeypatch):
    """Have layers large enough for shares to be what they are in a large one."""
    monkeypatch.setattr(address_filter, "LAYER_KEYS_MIN", 16_384)


@pytest.fixture
def snapshot(tmp_path, small_layers):
    """Give a file of 1,000 keys in several layers, and the keys."""
    keys = keys_of(1, 1_000)
    content = AddressFilter(77)
    content.update(keys)
    assert len(content.layers) > 2
    path = tmp_path / "filters" / "live-evm.filter"
    assert filter_snapshots.write(path, header_of(content), content)
    return path, keys


def header_of(content, **changed):
    header = Header(
        mode="live", family="evm", origin=ORIGIN, witness=WITNESS, seed=content.seed, count=len(content),
        layers=content.layers,
    )  # fmt: skip
    return msgspec.structs.replace(header, **changed)


def read(path, *, mode="live", family="evm", origin=ORIGIN):
    return filter_snapshots.read(path, mode=mode, family=family, origin=origin)


class TestKnowing:
    @settings(max_examples=60, deadline=None)
    @given(st.sets(st.binary(min_size=1, max_size=40), max_size=200), st.integers(0, 2**64 - 1), st.integers(1, 50))
    def test_whatever_was_added_is_never_denied(self, keys, seed, room):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(address_filter, "LAYER_KEYS_MIN", room)
            content = AddressFilter(seed)
            added = []
            for key in keys:
                content.update([key])
                added.append(key)
                assert all(one in content for one in added[-3:])
            assert all(key in content for key in keys)
            assert len(content) <= len(keys)

    @pytest.mark.usefixtures("middling_layers")
    def test_it_errs_as_seldom_as_it_should_however_far_it_has_grown(self):
        content, strangers = AddressFilter(4), keys_of(1_000, 20_000)
        added = keys_of(4, 120_000)
        for start in range(0, len(added), 20_000):
            content.update(added[start : start + 20_000])
            wrong = sum(key in content for key in strangers)
            assert wrong <= len(content.layers) * address_filter.ERRORS_PER_LAYER * len(strangers) * 1.5 + 8
        assert all(key in content for key in added)
        assert content.crowded

    def test_one_layer_with_room_for_all_errs_less_than_the_target(self):
        content = AddressFilter(3, room=200_000)
        content.update(keys_of(1, 200_000))
        assert len(content.layers) == 1
        assert sum(key in content for key in keys_of(2, 100_000)) <= ERRORS_MAX * 100_000

    @pytest.mark.usefixtures("middling_layers")
    def test_its_memory_is_at_most_24_bits_a_key_however_it_grew(self):
        content = AddressFilter(3)
        for start in range(0, 120_000, 5_000):
            content.update(keys_of(start, 5_000))
            if len(content) > 4 * address_filter.LAYER_KEYS_MIN:
                assert content.size_bytes * 8 <= 24 * len(content)
        assert content.crowded

    @pytest.mark.usefixtures("small_layers")
    def test_a_key_that_comes_again_takes_no_room(self):
        content, keys = AddressFilter(3), keys_of(1, 200)
        for _ in range(50):
            content.update(keys)
        assert 190 <= len(content) <= 200
        assert len(content.layers) == 1

    @pytest.mark.usefixtures("small_layers")
    def test_who_does_not_know_the_seed_cannot_make_keys_that_are_mistaken(self):
        """What one filter mistakes, found by trying with its seed, is nothing special to a filter with another."""
        watched = keys_of(1, 250)
        known, other = AddressFilter(1), AddressFilter(2)
        known.update(watched)
        other.update(watched)
        crafted = [key for key in keys_of(5, 200_000) if key in known]
        assert crafted
        assert sum(key in other for key in crafted) <= max(1, len(crafted) // 4)

    @pytest.mark.usefixtures("small_layers")
    def test_keys_that_look_alike_do_not_crowd_into_a_corner(self):
        """Somebody has only addresses with the same beginning and end watched: strangers are mistaken no more often."""
        content = AddressFilter(9, room=20_000)
        content.update(b"\x00" * 12 + number.to_bytes(4) + b"\x00" * 4 for number in range(20_000))
        strangers = [b"\x00" * 12 + number.to_bytes(4) + b"\x00" * 4 for number in range(1_000_000, 1_050_000)]
        assert sum(key in content for key in strangers) <= ERRORS_MAX * len(strangers)


class TestSnapshots:
    def test_a_filter_comes_back_as_it_was_and_grows_on(self, snapshot):
        path, keys = snapshot
        header, content = read(path)
        assert header.witness == WITNESS
        assert len(content) == header.count > 950
        assert all(key in content for key in keys)
        more = keys_of(2, 5_000)
        content.update(more)
        assert all(key in content for key in keys + more)

    @settings(max_examples=20, deadline=None)
    @given(st.sets(st.binary(min_size=20, max_size=20), min_size=1, max_size=300), st.integers(0, 2**64 - 1))
    def test_nothing_is_lost_on_the_way_to_the_disk_and_back(self, tmp_path_factory, keys, seed):
        path = tmp_path_factory.mktemp("filters") / "live-evm.filter"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(address_filter, "LAYER_KEYS_MIN", 64)
            content = AddressFilter(seed)
            content.update(keys)
            filter_snapshots.write(path, header_of(content), content)
            _, found = read(path)
        assert all(key in found for key in keys)

    def test_only_its_owner_may_read_it(self, snapshot):
        path, _ = snapshot
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    def test_no_byte_of_it_may_change(self, snapshot):
        path, _ = snapshot
        whole = path.read_bytes()
        draw = random.Random(4)
        places = [*range(300), *range(len(whole) - 40, len(whole)), *draw.sample(range(len(whole)), 400)]
        for place in places:
            damaged = bytearray(whole)
            damaged[place] ^= 1 << draw.randrange(8)
            path.write_bytes(damaged)
            with pytest.raises(SnapshotError):
                read(path)
        path.write_bytes(whole)
        read(path)

    def test_half_a_file_is_none(self, snapshot):
        path, _ = snapshot
        whole = path.read_bytes()
        for length in [0, 5, 20, 100, len(whole) // 2, len(whole) - 1]:
            path.write_bytes(whole[:length])
            with pytest.raises(SnapshotError):
                read(path)
        path.write_bytes(whole + b"\0")
        with pytest.raises(SnapshotError, match="as long as"):
            read(path)

    @pytest.mark.parametrize(
        "changed",
        [
            {"mode": "sandbox"},
            {"family": "tron"},
            {"origin": msgspec.structs.replace(ORIGIN, system_identifier="8")},
            {"origin": msgspec.structs.replace(ORIGIN, timeline="00000002")},
            {"origin": msgspec.structs.replace(ORIGIN, database=6)},
            {"origin": msgspec.structs.replace(ORIGIN, files=[10, 12])},
            {"key_version": 2},
            {"libraries": {"rbloom": "9", "xxhash": "9"}},
            {"layers": []},
        ],
        ids=["mode", "family", "server", "timeline", "database", "table", "key", "libraries", "layers"],
    )
    def test_a_whole_file_of_something_else_is_refused(self, snapshot, changed):
        path, keys = snapshot
        content = AddressFilter(77)
        content.update(keys)
        assert filter_snapshots.write(path, header_of(content, **changed), content)
        with pytest.raises(SnapshotError):
            read(path)

    def test_one_that_says_nonsense_of_its_own_layers_is_refused(self, snapshot):
        path, _ = snapshot
        content = AddressFilter(77)
        layers = [address_filter.Layer(room=5, segment_bytes=3)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(AddressFilter, "pieces", lambda _self, _layers: iter([b"abc"] * 64))
            filter_snapshots.write(path, header_of(content, layers=layers), content)
        with pytest.raises(SnapshotError, match="damaged"):
            read(path)

    @pytest.mark.parametrize("written", [0, 1, 100])
    def test_a_write_that_breaks_off_leaves_the_file_before_it(self, snapshot, written):
        path, keys = snapshot
        before = path.read_bytes()
        content = AddressFilter(5)
        content.update(keys_of(8, 2_000))
        header, pieces = header_of(content), content.pieces

        class DiskFullError(OSError):
            pass

        def some(layers):
            for number, piece in enumerate(pieces(layers)):
                if number == written:
                    raise DiskFullError
                yield piece

        content.pieces = some
        with pytest.raises(DiskFullError):
            filter_snapshots.write(path, header, content)
        assert path.read_bytes() == before
        _, found = read(path)
        assert all(key in found for key in keys)
        assert sorted(one.name for one in path.parent.iterdir()) == ["live-evm.filter", "live-evm.filter.lock"]

    def test_a_process_that_is_killed_while_it_writes_leaves_the_file_before_it(self, snapshot):
        path, keys = snapshot
        before = path.read_bytes()
        child = os.fork()
        if child == 0:
            content = AddressFilter(5)
            content.update(keys_of(8, 2_000))
            header = header_of(content)
            content.pieces = lambda _layers: iter([b"x" * 100_000, os._exit(9)])
            filter_snapshots.write(path, header, content)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        assert path.read_bytes() == before
        assert path.with_name("live-evm.filter.partial").exists()
        content = AddressFilter(77)
        content.update(keys)
        assert filter_snapshots.write(path, header_of(content), content)
        assert not path.with_name("live-evm.filter.partial").exists()
        read(path)

    def test_two_processes_do_not_write_at_once(self, snapshot):
        path, keys = snapshot
        content = AddressFilter(77)
        content.update(keys)
        with filter_snapshots._lock(path) as mine:
            assert mine
            assert not filter_snapshots.write(path, header_of(content), content)
        assert filter_snapshots.write(path, header_of(content), content)
