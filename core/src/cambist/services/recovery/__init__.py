"""What an operator turns to: checking the books against the chains, and rebuilding them from the seed."""
