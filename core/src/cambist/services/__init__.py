"""Use cases, one file or folder per noun. They take a connection and never commit: the edge does."""
