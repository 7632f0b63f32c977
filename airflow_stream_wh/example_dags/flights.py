"""The ``flights`` example, moved every hour: ``stream-wh init /srv/flights --example flights`` makes the project."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow_stream_wh import stream_warehouse_dags

PROJECT = os.environ.get("STREAM_WH_PROJECT", "/srv/flights")

flights, flights_vacuum = stream_warehouse_dags(
    "flights",
    PROJECT,
    schedule="0 * * * *",  # the run of 11:00 to 12:00 moves the windows to 12:00
    start_date=datetime(2013, 1, 1, 6, tzinfo=UTC),
    end_date=datetime(2013, 1, 2, 12, tzinfo=UTC),  # the example's data end here
    catchup=True,  # one run for each hour since start_date, the oldest first
    expect={"flights": "{{ data_interval_start.strftime('%Y-%m-%dT%H') if data_interval_start else '' }}*.csv.gz"},
    patience=timedelta(minutes=10),
    warehouse="flights",
    tables=["flights", "weather", "planes", "with_weather"],
    update={"allow_dead": True, "on_problems": "warn"},
)
