"""The API's description: what it is made of, and the pages that show it."""
