"""The web side of Cambist: REST API, checkout pages and the dashboard's backend."""
