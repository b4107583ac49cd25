"""Methods and properties that are replaced between calls are noticed."""

from __future__ import annotations

from typing import Any

import fusec


def classes() -> tuple[Any, Any]:
    class Base:
        scale = 2.0

        def weigh(self, x: float) -> float:
            return x * 2

        @property
        def bias(self) -> float:
            return 1.0

    class Derived(Base):
        pass

    return Base, Derived


def weighed(o: Any, x: float) -> float:
    return o.weigh(x) + o.bias


def test_methods_of_an_object() -> None:
    compiled, (base, derived) = fusec.jit(weighed), classes()
    o = derived()
    assert compiled(o, 1.0) == 3.0
    o.weigh = lambda x: x + 100
    assert compiled(o, 1.0) == weighed(o, 1.0) == 102.0
    del o.weigh
    assert compiled(o, 1.0) == 3.0
    derived.weigh = lambda self, x: x + 5
    assert compiled(o, 1.0) == 7.0
    del derived.weigh
    base.weigh = lambda self, x: x - 5
    assert compiled(o, 1.0) == -3.0


def test_another_class() -> None:
    compiled, (base, derived) = fusec.jit(weighed), classes()
    derived.weigh = lambda self, x: x + 5
    o = base()
    assert compiled(o, 1.0) == 3.0
    o.__class__ = derived
    assert compiled(o, 1.0) == 7.0


def test_properties() -> None:
    compiled, (base, _) = fusec.jit(weighed), classes()
    o = base()
    assert compiled(o, 1.0) == 3.0
    base.bias = property(lambda self: 10.0)
    assert compiled(o, 1.0) == 12.0


def test_methods_of_objects_made_in_the_program() -> None:
    base, _ = classes()
    compiled = fusec.jit(lambda x: base().weigh(x))
    assert compiled(1.0) == 2.0
    base.weigh = lambda self, x: x + 7
    assert compiled(1.0) == 8.0


def test_objects_that_are_called() -> None:
    class Model:
        def __init__(self) -> None:
            self.weight, self.calls = 2.0, 0

        def __call__(self, x: float) -> float:
            self.calls += 1
            return self.weight * x

    model = Model()
    compiled = fusec.jit(model)
    assert compiled.__name__ == "Model" and compiled(1.0) == 2.0
    model.weight = 3.0
    assert compiled(1.0) == 3.0 and model.calls == 2
