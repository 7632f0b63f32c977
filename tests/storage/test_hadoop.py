"""Spark's settings for an object store: they come from the environment, unless the user sets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from warehouse.errors import PlatformError
from warehouse.objects.path import ObjectPath
from warehouse.storage import packages
from warehouse.storage.hadoop import PACKAGES, store_settings

ROOT = ObjectPath("s3://bucket/house")
IMPLEMENTATION = "spark.hadoop.fs.s3.impl"
ENDPOINT = "spark.hadoop.fs.s3a.endpoint"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the store's variables, and provide the jars."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(packages, "jars_of", lambda *_: ["/jars/one.jar", "/jars/two.jar"])


def test_a_local_root_needs_nothing() -> None:
    """No setting, no jar."""
    assert store_settings(Path("/somewhere"), {}) == {}


def test_the_environment_names_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endpoint and region equal the other clients' settings, and buckets of an endpoint are addressed by path."""
    plain = store_settings(ROOT, {})
    assert (ENDPOINT in plain, IMPLEMENTATION in plain) == (False, True)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    settings = store_settings(ROOT, {})
    assert settings[ENDPOINT] == "http://127.0.0.1:1"
    assert settings["spark.hadoop.fs.s3a.endpoint.region"] == "eu-north-1"
    assert settings["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert settings["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"
    assert not any("secret" in key or "access.key" in key for key in settings)


def test_what_the_user_gives_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's settings are not replaced."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert ENDPOINT not in store_settings(ROOT, {ENDPOINT: "https://else.where"})


def test_jars_go_where_they_are_found() -> None:
    """A local driver has them in its class path, remote executors get them from the driver; the user's stay."""
    assert store_settings(ROOT, {})["spark.driver.extraClassPath"] == "/jars/one.jar:/jars/two.jar"
    own = {"spark.driver.extraClassPath": "/a.jar"}
    assert store_settings(ROOT, own)["spark.driver.extraClassPath"] == "/a.jar:/jars/one.jar:/jars/two.jar"
    assert store_settings(ROOT, {"spark.master": "spark://host:7077"})["spark.jars"] == "/jars/one.jar,/jars/two.jar"
    for settings in ({"spark.jars.packages": PACKAGES[0]}, {"spark.jars": "/opt/hadoop-aws-3.5.0.jar"}):
        assert not any("one.jar" in value for value in store_settings(ROOT, settings).values())
    assert not any("one.jar" in value for value in store_settings(ROOT, {}, launched=True).values())


def test_another_store_needs_its_file_system() -> None:
    """The error names the store and the required setting."""
    with pytest.raises(PlatformError, match=r"spark\.hadoop\.fs\.gs\.impl"):
        store_settings(ObjectPath("gs://bucket/house"), {})
    assert store_settings(ObjectPath("gs://bucket/house"), {"spark.hadoop.fs.gs.impl": "some.Class"}) == {}
