"""Money that does not simply belong to an order: what there is of it, and what a merchant decides about it."""
