"""Code of the user's that Python or a library runs by itself: ``key=`` of `bisect`, ``__hash__`` of
keys, callbacks of an `ExitStack`, functions that a thread runs.

It runs as it is, and only while the function is traced: its reads are guarded, and its
assignments refused.  From where such code is met first, the rest of the trace is profiled, which
tells of every call; programs without it are not.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dis import opname
from inspect import CO_GENERATOR
from types import (
    BuiltinMethodType,
    CodeType,
    FrameType,
    FunctionType,
    MappingProxyType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from fusec.core.locations import is_titling
from fusec.errors import FusecError, unsupported

from ..convert.cache import is_converted, is_imported
from ..convert.properties import class_attribute
from ..facts.code_names import HEAP_TYPE
from ..facts.policy import stays_plain
from ..facts.refusals import gives_objects
from ..facts.static_values import attributes_in, slots_of
from ..guards.array_values import guard_content
from ..guards.contents import everything_in
from ..guards.guard import Guard, is_guarded, once_guard, place_guard
from ..guards.measures import ATOMS, CONTAINERS, VIEWS
from ..guards.places import UNBOUND, Cell, Global, Places
from ..guards.plain_calls import LOOKING
from ..guards.watched_code import Verdict, answers, may_matter, runs_code, users_methods, verdict
from ..library.callees import callee_name
from ..values.array import TracedArray
from ..values.trace import current
from .attribute_guards import note_constant
from .tracing_hooks import TracingHooks

# They keep a function, which is converted where the program calls it.
_KEEPING = LOOKING | {functools.partial, functools.wraps, functools.update_wrapper}
_LATER = (atexit.register, weakref.finalize, weakref.ref, weakref.proxy, weakref.WeakMethod)
_WEAK: tuple[Any, ...] = (weakref.ref, weakref.proxy)
_COMPARING = frozenset({"count", "index", "remove"})  # methods that compare items
_MOST_LOOKED_AT = 64  # items of a container that is handed over
_NAMESPACES = (dict, MappingProxyType)
_BOUND = BuiltinMethodType, MethodWrapperType
_NOT_RUN = (*ATOMS, np.ndarray, np.dtype, type(len), WrapperDescriptorType)

# Code of fusec's own and of libraries, by identity, with what keeps it alive.
_quiet: dict[int, Verdict] = {}
CALLING: set[CodeType] = set()  # code of hooks that calls `TracingHooks.callee`


class Watch:
    """Of one trace."""

    def __init__(self, hooks: TracingHooks) -> None:
        self.hooks, self.trace = hooks, hooks.trace
        self.refusal: FusecError | None = None
        self.functions: dict[FunctionType, None] = {}  # that run as they are
        self._is_wanted = self._is_on = self._collects = False
        self._before: Any = None
        self._paused: Any = None
        # Objects of the standard library, with what they held before its code ran.
        self._library: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._thread = threading.get_ident()
        self._known: set[int] = set()

    # -- what is met ------------------------------------------------------------------------------

    def check_class(self, kind: type) -> None:
        """Raise for objects that do something when they are let go."""
        method = class_attribute(kind, "__del__")
        if type(method) is FunctionType and may_matter(method, kind):
            raise unsupported(
                f"making a {kind.__name__}, which has a __del__,", loc=self.trace.loc,
                cure="make it before the call, or call a method of it instead",
                notes=("objects that the program makes and lets go are made while tracing only",))

    def see(self, x: Any) -> None:
        """The program has this value: Python may run its class's code anywhere."""
        kind = type(x)
        if kind.__flags__ & HEAP_TYPE and kind is not TracedArray and runs_code(kind)[0]:
            self._enter_class(kind)
            self.start()

    def note_arguments(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``fn``, which is called as it is, gets these."""
        if fn in _WEAK and args and id(args[0]) in self.trace.local.objects:
            raise unsupported(
                f"a weak reference to a {type(args[0]).__name__} that the function made",
                loc=self.trace.loc, cure="keep the object itself, or make it before the call",
                notes=("while the function is traced all objects that it made live on",))
        if (type(fn) in (type, type(len)) and fn in _KEEPING) or (
                type(fn) is FunctionType and "converts_functions" in vars(fn)):
            return
        if isinstance(fn, np.ufunc) and gives_objects(fn):
            self.start()  # one of np.frompyfunc
        if isinstance(getattr(fn, "__self__", None), CONTAINERS) and fn.__name__ not in _COMPARING:
            return  # it keeps what it is given
        code = [x for x in _handed(fn, args, kwargs) if self._is_run(x)]
        if not code:
            return
        if any(fn is one for one in _LATER) and any(isinstance(
                x, FunctionType | MethodType) for x in args[fn is not atexit.register:]):
            raise unsupported(
                f"{fn.__name__} with a function that Python calls later", loc=self.trace.loc,
                cure="do it before or after the call: it would happen while tracing only")
        self.start()

    def asks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """C may call any special method of objects among these."""
        handed = _handed(None, args, kwargs)
        if any(type(x) is not TracedArray and answers(type(x)) for x in handed):
            self.start()

    def constructing(self, kind: type) -> None:
        """An object of the class is about to be made as Python makes it."""
        if kind.__flags__ & HEAP_TYPE and any(
                type(fn) is FunctionType and not stays_plain(fn) for fn in _makers(kind)):
            self._enter_class(kind)
            self.start()

    def _is_run(self, x: Any) -> bool:
        """Whether it is code of the user's, or has some."""
        while type(x) is not TracedArray and isinstance(x, functools.partial):
            x = x.func
        if type(x) is TracedArray or isinstance(x, _NOT_RUN):
            return False
        function = x.__func__ if isinstance(x, MethodType) else x
        if isinstance(function, FunctionType):
            if stays_plain(function):
                return False
            self._enter(function)
            return True
        kind = type(x)
        called = class_attribute(kind, "__call__")
        is_called = type(called) is FunctionType and not stays_plain(called)
        if not kind.__flags__ & HEAP_TYPE or not (is_called or runs_code(kind)[1]):
            return False
        self._enter_class(kind)
        return True

    def _enter_class(self, kind: type) -> None:
        if id(kind) not in self._known:
            self._known.add(id(kind))
            for _, fn in users_methods(kind):
                self._enter(fn)

    def _enter(self, fn: FunctionType) -> None:
        """Objects that it names must be the same at each call."""
        if fn in self.functions or fn in self.hooks.functions:
            return
        self.functions[fn] = None
        self.trace.world.reachable.enter(fn)
        for cell in fn.__closure__ or ():
            held = Cell(cell, "")()
            if type(held) is FunctionType and not stays_plain(held):
                self._enter(held)

    # -- while it runs ----------------------------------------------------------------------------

    def start(self) -> None:
        """Hear of every call from now on, or from where the program begins."""
        self._is_wanted = True
        if self._is_on or current() is not self.trace:
            return
        before = sys.getprofile()
        if before is not None and not callable(before):
            before.disable()  # cProfile's, until the program has been traced
            self._paused, before = before, None
        self._is_on, self._before = True, before
        # What the collector calls, callbacks and finalizers, is not called by the program.
        self._collects = gc.isenabled()
        gc.disable()
        listener = self._listener()
        threading.setprofile(listener)
        sys.setprofile(listener)

    @contextmanager
    def around(self) -> Iterator[None]:
        """The program runs."""
        try:
            if self._is_wanted:
                self.start()
            yield
        finally:
            self.stop()

    def stop(self) -> None:
        """The program has returned; raises errors that other code has kept to itself."""
        if self._is_on:
            self._is_on = False
            if self._collects:
                gc.enable()
            sys.setprofile(self._before)
            threading.setprofile(None)
            if self._paused is not None:
                self._paused.enable()
                self._paused = None
        for x, held in self._library.values():
            if any(vars(x).get(name, UNBOUND) is not value for name, value in held.items()):
                self.trace.world.guards[id(x), ""] = once_guard(type(x).__name__, self.trace.loc)
        self._library.clear()
        if self.refusal is not None:
            raise self.refusal

    def _listener(self) -> Callable[[FrameType, str, Any], None]:
        """`_heard` where the code may matter: of a million calls in a trace a few are the user's.
        """
        before, heard = self._before, self._heard

        def listen(frame: FrameType, event: str, value: Any) -> None:
            if event == "call" and id(frame.f_code) not in _quiet:
                heard(frame)

        def both(frame: FrameType, event: str, value: Any) -> None:
            before(frame, event, value)
            listen(frame, event, value)

        return listen if before is None else both

    def _heard(self, frame: FrameType) -> None:
        if not self._is_on or _is_made_only(frame):
            return
        ruling = verdict(frame.f_code, frame.f_globals)
        if not ruling.is_users and not is_converted(frame.f_code):
            _quiet[id(frame.f_code)] = ruling
            return
        is_elsewhere = threading.get_ident() != self._thread
        if is_elsewhere and is_converted(frame.f_code):
            self.refusal = self.refusal or unsupported(
                f"running {frame.f_code.co_name} in another thread", loc=self.trace.entry_loc,
                cure="call it here, or start the thread outside of the compiled function")
            raise self.refusal
        if not ruling.is_users or not (is_elsewhere or current() is self.trace) or (
                is_imported(frame) or is_titling(frame)):
            return
        if ruling.assigns or (ruling.changes and (is_elsewhere or self.trace.in_region)):
            self.refusal = self.refusal or self._refused(ruling, frame)
            raise self.refusal
        self._note_read(frame)

    def _refused(self, ruling: Verdict, frame: FrameType) -> FusecError:
        code = ruling.code
        what = f"assigns {ruling.assigns!r}" if ruling.assigns else "changes a container"
        place = f"{code.co_qualname} (line {code.co_firstlineno})"
        return unsupported(
            f"{place}, which {self._caller(frame)} calls and which {what},",
            loc=self.trace.loc or self.trace.entry_loc,
            cure=f"call {code.co_name} in the program itself, or have it return what it "
            f"{'assigns' if ruling.assigns else 'changes'}",
            notes=("what is called by code that is not compiled runs while tracing only",))

    def _caller(self, frame: FrameType) -> str:
        """The function that the program called, as messages name it."""
        outer: FrameType | None = frame.f_back
        while outer is not None and not is_converted(outer.f_code):
            if outer.f_code in CALLING:
                return callee_name(self.hooks.callee)
            outer = outer.f_back
        return "Python" if outer is not None else "another thread"

    def _note_read(self, frame: FrameType) -> None:
        """Values that the code of the frame can read must be the same at each call."""
        names, scope = frame.f_code.co_names, frame.f_globals
        for name in names:
            if name in scope:
                self._note_name(Global(scope, name), names)
        given = frame.f_locals
        if (made := _begun(frame)) is not None:
            self.hooks.note_made(made)
        for name in (*frame.f_code.co_varnames[:frame.f_code.co_argcount],
                     *frame.f_code.co_freevars):
            if name in given:
                self._note_outside(given[name], names)

    def _note_name(self, name: Global, attributes: tuple[str, ...]) -> None:
        value = name()
        if name.key not in self.trace.world.reachable.names and _is_data(value):
            guard = place_guard(name)
            self.trace.world.guards.setdefault(name.key, guard)
            self.trace.world.reachable.note(guard, name.key)
        self._note_outside(value, attributes)

    def note_library_object(self, x: Any) -> None:
        """Methods of the standard library read the object's contents, and may change them."""
        if self.trace.active and id(x) not in self._known and id(x) not in (
                self.trace.local.objects):
            self._known.add(id(x))
            if type(getattr(x, "__dict__", None)) is dict and is_guarded(x):
                self._library[id(x)] = x, dict(vars(x))
            if isinstance(x, Mapping) and not isinstance(x, (dict, *VIEWS)):
                title = f"what is in a {type(x).__name__}"  # a part of a ConfigParser
                self.trace.world.guards[id(x), ""] = Guard(title, title, functools.partial(dict, x))
            for name in getattr(x, "__dict__", ()):
                if is_guarded(x):
                    note_constant(self.trace, x, name)

    def note_global(self, scope: dict[str, Any], name: str) -> None:
        """``globals()[name]``"""
        self._note_name(Global(scope, name), ())

    def _note_outside(self, x: Any, attributes: tuple[str, ...]) -> None:
        """An object, or array, that such code reads, and its parts that are read."""
        def read_of(x: Any) -> list[Any]:
            if not is_guarded(x):
                return []
            own: Any = getattr(x, "__dict__", None)
            if own is None or any(slots_of(type(x))):
                own = dict(attributes_in(x))
            if type(own) not in _NAMESPACES:
                return []
            names = [name for name in attributes if _is_read(x, own, name)]
            if id(x) not in self.trace.local.objects:
                self._note_attributes(x, names)
            return [own[name] for name in names if name in own]

        for item in everything_in(x, read_of):
            if isinstance(item, np.ndarray) and type(item) is not TracedArray:
                guard_content(self.trace, item)

    def _note_attributes(self, x: Any, names: list[str]) -> None:
        for name in names:
            if self.trace.part(Places).attribute(x, name) is not None:
                raise unsupported(
                    f"reading the attribute {name!r}, which the program assigns, in code that is "
                    "not compiled", loc=self.trace.loc, cure="read it in the program itself")
            note_constant(self.trace, x, name)


def _is_read(x: Any, own: Mapping[str, Any], name: str) -> bool:
    """Whether the object holds data of this name, or its class does."""
    if name in own and not isinstance(x, type):
        return True
    value = class_attribute(x if isinstance(x, type) else type(x), name)
    return value is not None and _is_data(value) and not hasattr(type(value), "__get__")


def _is_data(value: Any) -> bool:
    return not callable(value) and type(value) is not TracedArray and not isinstance(
        value, type(sys))


def _begun(frame: FrameType) -> Any:
    """The object whose ``__init__`` begins, and which holds nothing yet: it is the trace's own."""
    code = frame.f_code
    if code.co_name != "__init__" or not code.co_argcount:
        return None
    made = frame.f_locals.get(code.co_varnames[0])
    return None if isinstance(made, type) or any(attributes_in(made)) else made


def _is_made_only(frame: FrameType) -> bool:
    """Whether it is the frame of a generator that is made, or let go before it ran."""
    code, last = frame.f_code, frame.f_lasti
    return bool(code.co_flags & CO_GENERATOR) and (
        last < 0 or opname[code.co_code[last]] == "RETURN_GENERATOR")


def _handed(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
    """The objects that a call is given, and the items of small containers among them."""
    owner = fn.__self__ if isinstance(fn, (*_BOUND, MethodType)) else None
    for x in (owner, *args, *kwargs.values()):
        yield x
        if type(x) is not TracedArray and isinstance(x, CONTAINERS) and len(x) <= _MOST_LOOKED_AT:
            yield from x
            if isinstance(x, dict):
                yield from x.values()


def _makers(kind: type) -> Iterator[Any]:
    """The functions that run where an object of the class is made."""
    yield class_attribute(type(kind), "__call__")
    for name in ("__new__", "__init__", "__post_init__", "_missing_"):
        attribute = class_attribute(kind, name)
        yield getattr(attribute, "__func__", attribute)
    for field in getattr(kind, "__dataclass_fields__", {}).values():
        factory: Any = field.default_factory
        if factory is not dataclasses.MISSING:
            yield getattr(factory, "__func__", factory)
