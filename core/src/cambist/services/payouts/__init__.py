"""Money that merchants send: asked for, set aside, handed to the engine, and what became of it."""
