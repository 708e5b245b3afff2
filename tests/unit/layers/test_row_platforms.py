"""Numbers of platforms follow the rows that have them."""

from lamina.layers.row_platforms import MOST, OTHER, RowPlatforms
from lamina.model.image import Platform


def test_a_platform_that_shrinks_gives_its_number_to_one_that_more_rows_have() -> None:
    numbers: dict[int, int] = {}
    platforms = RowPlatforms(numbers.__setitem__)
    kinds = [Platform(architecture=f"a{number}") for number in range(MOST + 1)]
    row = 0
    for kind in kinds[:MOST]:
        for _ in range(4):
            platforms.put(row, kind)
            row += 1
    for _ in range(3):
        platforms.put(row, kinds[MOST])
        row += 1
    assert OTHER == numbers[row - 1]

    # Two of the four rows of the first platform leave: two are left, and three have the last one.
    platforms.put(0, None)
    platforms.put(1, None)

    assert OTHER == numbers[2]
    assert OTHER != numbers[row - 1]
    assert MOST == len(platforms)
