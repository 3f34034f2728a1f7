"""Use cases, in rooms with an order (ADR 0022). They take a connection and never commit: the edge does."""
