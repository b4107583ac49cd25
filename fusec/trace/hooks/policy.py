"""What each thing that a traced program does means: the handlers that are asked, in their order.

First come those for operands that are no plain values (that data may have made None, that are
objects of other libraries or arrays from outside), then those that know an answer of the graph's;
Python itself, with special methods of the user's classes, comes last.
"""

from __future__ import annotations

from ..convert.hooks import Hooks
from ..objects.tracing_hooks import Policy, TracingHooks, with_policy
from ..objects.watch import Watch
from ..places.containers import Containers
from ..places.outer_names import OuterNames
from ..places.outside import Outside
from ..values.trace import Trace
from . import (
    attributes,
    calls,
    control,
    items,
    numpy_handlers,  # noqa: F401 (answers for NumPy: see `values.handlers`)
    operators,
    optional,
    special_methods,
)

PROGRAM = Policy({
    # operators
    "unop": (optional.unop, operators.unop),
    "binop": (
        optional.binop, operators.repeated, operators.refuse_foreign, operators.format_text,
        operators.lift, operators.refuse_words, operators.computed(special_methods.binop)),
    "iop": (
        optional.iop, operators.refuse_words, operators.repeated, operators.write_traced,
        operators.computed(special_methods.iop)),
    "compare": (
        optional.compare, operators.identity_of, operators.lift,
        operators.compare_items, operators.note_methods,
        operators.computed(special_methods.compare)),
    "contains": (
        optional.contains, operators.find_in_array, operators.find_among_few,
        operators.find_in_world, special_methods.contains),
    # attributes and items
    "getattr": (
        optional.owner, attributes.of_super, attributes.of_module, attributes.namespace,
        attributes.of_array, attributes.assigned, attributes.read),
    "setattr": (
        optional.setattribute, attributes.assign_traced, attributes.assign_own_array,
        special_methods.setattribute, attributes.store),
    "delattr": (attributes.delete,),
    "getitem": (
        optional.getitem, items.by_index, items.of_world, items.of_array, items.at_position,
        items.read),
    "setitem": (
        optional.setitem, items.assign_by_index, items.assign_in_array,
        items.assign_in_container, special_methods.setitem),
    "delitem": (items.delete,),
    "as_index": (special_methods.as_index,),
    # calls: `called` gets the function, a tuple and a dict
    "called": (
        optional.call, calls.hear, items.change_by_method, calls.trace_arguments,
        calls.ask_world, calls.call_of_library, special_methods.constructed,
        calls.call_of_wrapper, calls.make_text, calls.compute_of_sizes, calls.run),
    "resolve": (special_methods.resolve,),
    "converted": (calls.converted,),
    "frame": (calls.frame,),
    "returned": (calls.returned,),
    "bound": (optional.bound,),
    # what is taken apart, and texts
    "iterate": (optional.iterate, calls.elements),
    "starred": (optional.starred, calls.starred),
    "unpack": (optional.unpack, calls.unpacked),
    "matched": (optional.matched, calls.matched),
    "format_value": (calls.format_value,),
    # truth and control flow
    "asked_truth": (special_methods.asked_truth,),
    "decide": (control.decide,),
    "truth": (control.truth,),
    "test": (control.take, Hooks.test),
    "not_": (control.not_,),
    "undecided": (control.undecided,),
    "any_flag": (control.any_flag,),
    "assert_": (control.assert_,),
    "if_": (control.if_,),
    "if_return": (control.if_return,),
    "if_expression": (control.if_return,),
    "while_": (control.while_,),
    "for_": (control.for_,),
    "list_of": (control.list_of,),
    "reduced_where": (control.reduced_where,),
    "trying": (special_methods.trying,),
    "manager": (special_methods.manager,),
})


def hooks_of_program(trace: Trace) -> TracingHooks:
    """The hooks of what is traced; they give the trace what it works with."""
    hooks = with_policy(PROGRAM)(trace)
    world, trace.hooks = trace.world, hooks
    world.outer_names = OuterNames(trace)
    world.containers = Containers(trace)
    world.reachable = Outside(trace)
    world.watch = Watch(hooks)
    return hooks
