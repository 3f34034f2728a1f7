"""What the worker does that begins and ends: one module per noun. ``cambist_tasks.crons`` says when each recurs.

A recurring job takes the gateway and returns True while there is more to do at once. It may run twice at the same
time, in one worker or in two, and must leave the same effect as if it had run once.
"""
