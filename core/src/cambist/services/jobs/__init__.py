"""Background work that begins and ends: claims of recurring jobs, and jobs that somebody asked for.

Here are the rows. The functions that do the work are in ``cambist_tasks.jobs``, and when they recur in
``cambist_tasks.crons``.
"""
