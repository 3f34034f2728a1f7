"""Up to where a chain can be confirmed: said once in Python and once in SQL, and the same in both."""

from itertools import product

from cambist.services.chain_scope import DEEPEST, deepest

HEIGHTS = (-3, 0, 7, 100)
FINALIZED = (None, -1, 0, 6, 7, 8, 100, 101)
CEILING = DEEPEST.format(height="$1::bigint", finalized="$2::bigint", finality_required="$3::bool")


def test_without_finality_it_is_the_height_and_with_it_the_finalized_block_up_to_that():
    assert deepest(7, None, finality_required=False) == deepest(7, 3, finality_required=False) == 7
    assert [deepest(7, final, finality_required=True) for final in (None, 3, 9)] == [-1, 3, 7]


async def test_statements_have_the_same_ceiling(db):
    async with db.autocommit() as conn:
        for height, finalized, required in product(HEIGHTS, FINALIZED, (True, False)):
            row = await conn.exec_driver_sql(f"SELECT {CEILING}", (height, finalized, required))
            assert row.scalar_one() == deepest(height, finalized, finality_required=required)
