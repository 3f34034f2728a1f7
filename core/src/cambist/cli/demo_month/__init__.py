"""The month before a visit to the demo: what a shop would have by then, made by the gateway's own services.

::

    clock.py     a clock that is set, from a month ago until now
    shop.py      the shop: each act as the API does it, at the clock's moment
    days.py      what happens on which day
    people.py    who works there and at the gateway, and what operators decide for the shop
    make.py      opens the gateway with that clock, and lets the days pass
    __main__.py  the process: on the demo's own servers, before anything else runs on them
"""
