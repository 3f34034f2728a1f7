"""The background side of Cambist: worker, chain watchers and webhook delivery."""
