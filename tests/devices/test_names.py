"""Names of devices: what is one, how scopes merge them, and which devices they stand for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from samples_of_names import MERGED

import fusec
from fusec.ir.device_names import DeviceName
from fusec.runtime.devices.registry import devices, matching

WHOLE = "/job:localhost/task:0/device:CPU:1"


@pytest.fixture(autouse=True)
def _two() -> Iterator[None]:
    with fusec.config.override(logical_cpu_devices=2):
        yield


@pytest.mark.parametrize("text, canonical", [
    (WHOLE, WHOLE), ("/device:CPU:1", "/device:CPU:1"), ("/cpu:1", "/device:CPU:1"),
    ("CPU:1", "/device:CPU:1"), ("cpu", "/device:CPU:*"), ("/device:*:1", "/device:*:1"),
    ("/device:GPU:*", "/device:GPU:*"), ("/job:localhost", "/job:localhost"),
    ("/job:localhost/replica:0/task:0/cpu:1", WHOLE), ("/task:0", "/task:0"), ("", ""),
])
def test_what_is_a_name(text, canonical) -> None:
    name = DeviceName.parse(text)
    assert str(name) == canonical and DeviceName.parse(canonical) == name


@pytest.mark.parametrize("text", [
    "/device:CPU:1 ", "/device:CPU:-1", "/device:CPU:1.5", "/device", "/gpu:0/cpu:0", "device:",
    "1", "/job:", "/task:x", "C PU:0", "/device:CPU:0\n", "CPU:0:0", "@x", "/device:CPU:0@x",
])
def test_what_is_none(text) -> None:
    with pytest.raises(ValueError, match=r"is no name of a device\n  cure: write \"/dev"):
        fusec.device(text)


@pytest.mark.parametrize("given", [3, 1.5, ["/cpu:0"], b"/cpu:0", object])
def test_what_is_no_text(given) -> None:
    if callable(given):  # taken for a function of nodes
        assert fusec.device(given).item.fn is given
        return
    with pytest.raises(TypeError, match="by its name or by a function of nodes"):
        fusec.device(given)


@pytest.mark.parametrize("outer, inner, merged", MERGED)
def test_the_inner_name_overrides(outer, inner, merged) -> None:
    assert str(DeviceName.parse(inner).under(DeviceName.parse(outer))) == merged


def test_names_stand_for_devices() -> None:
    assert [d.name.short for d in matching(DeviceName.parse("cpu"))] == ["CPU:0", "CPU:1"]
    assert [d.name.short for d in matching(DeviceName.parse("/device:*:1"))] == ["CPU:1"]
    assert matching(DeviceName.parse("/job:worker/cpu:0")) == []
    assert matching(DeviceName.parse("/task:1")) == [] and matching(DeviceName.parse("gpu")) == []
    assert matching(DeviceName()) == devices()
    with fusec.config.override(logical_cpu_devices=1):
        assert [d.name.short for d in matching(DeviceName.parse("cpu"))] == ["CPU:0"]


def test_what_is_whole() -> None:
    assert DeviceName.parse(WHOLE).is_whole and not DeviceName.parse("/device:CPU:1").is_whole
    assert str(DeviceName().whole()) == "/job:localhost/task:0/device:CPU:0"
    assert str(DeviceName.parse("/device:NULL:*").whole()).endswith("/device:NULL:0")
