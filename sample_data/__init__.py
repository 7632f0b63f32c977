"""Example projects that ``stream-wh init`` copies: each a directory with ``warehouse.toml`` and landing files.

``flights`` are departures from New York (made by ``make_flights``), ``answers`` are invented DNS answers; the latter's
``warehouse.toml`` shows every key there is.
"""
