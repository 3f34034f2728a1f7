"""Background work that begins and ends: claims of recurring jobs, and jobs that somebody asked for.

Here are the rows. The jobs themselves are defined in ``cambist_tasks.jobs``; when they recur, in
``cambist_tasks.crons``.
"""
