"""Names of devices: their form, how scopes merge them, and which devices they stand for."""

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
    ("/device:GPU:*", "/device:GPU:*"), ("cuda", "/device:GPU:*"), ("CUDA:1", "/device:GPU:1"),
    ("/job:localhost", "/job:localhost"),
    ("/job:localhost/replica:0/task:0/cpu:1", WHOLE), ("/task:0", "/task:0"), ("", ""),
    ("/job:*/task:*", ""), ("/job:*/cpu:1", "/device:CPU:1"),
])
def test_what_is_a_name(text, canonical) -> None:
    name = DeviceName.parse(text)
    assert str(name) == canonical and DeviceName.parse(canonical) == name


@pytest.mark.parametrize("text", [
    "/device:CPU:1 ", "/device:CPU:-1", "/device:CPU:1.5", "/device", "/gpu:0/cpu:0", "device:",
    "1", "/job:", "/task:x", "C PU:0", "/device:CPU:0\n", "CPU:0:0", "@x", "/device:CPU:0@x",
    "CPU:\uff11", "CPU:\u0663", "/job:\u00e9", "CPU:" + "1" * 300, "a" * 100_000,
])
def test_what_is_none(text) -> None:
    with pytest.raises(ValueError, match=r"is no name of a device\n  cure: write \"/dev"):
        fusec.device(text)


def test_an_error_shows_the_beginning_of_a_long_name() -> None:
    with pytest.raises(ValueError) as caught:
        fusec.device("a" * 100_000)
    assert len(str(caught.value)) < 500


def test_scopes_are_printed() -> None:
    assert repr(fusec.device("cpu:1")) == "<fusec.device '/device:CPU:1'>"
    assert repr(fusec.device(None, sends="bfloat16")) == "<fusec.device None, sends='bfloat16'>"
    assert repr(fusec.colocate_with(fusec.Variable(0.0, name="v"))) == (
        "<fusec.colocate_with Variable v>")


def test_devices_are_equal_by_name() -> None:
    first, second = fusec.devices()[0], fusec.devices()[0]
    assert first == second and hash(first) == hash(second) and first != fusec.devices()[1]
    assert len({*fusec.devices(), *fusec.devices()}) == len(fusec.devices())
    assert first != first.name


@pytest.mark.parametrize("given", [None, "CPU:1", b"x", {}, DeviceName()])
def test_what_nothing_can_be_beside(given) -> None:
    with pytest.raises(TypeError, match="colocate_with takes a value of the program"):
        fusec.colocate_with(given)

    @fusec.jit
    def f(x):
        with fusec.colocate_with(given):
            return x + 1

    with pytest.raises(TypeError, match=r"colocate_with takes a value.*\n.*\n.*\n.* in f"):
        f(1.0)


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
