"""The jobs: what the worker does that begins and ends, one module per noun.

``CRONS`` in ``cambist_tasks.crons`` says when each recurs, ``REQUESTED`` in ``cambist_tasks.requested`` which ones
somebody asks for.

A recurring job takes the gateway and returns True while there is more to do at once. It may run twice at the same
time, in one worker or in two, and must leave the same effect as if it had run once.
"""
