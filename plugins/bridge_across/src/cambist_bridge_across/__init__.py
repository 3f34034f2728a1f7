"""The Across bridge for Cambist: deposits that are read before they are signed, and fills that the chain shows."""
