"""Health and metrics."""

from .routes import Health

controllers = [Health]
