"""The meaning of each event of a traced program: the handlers that are asked, in order.

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
from ..places.reachable_names import Outside
from ..values.trace import Trace
from . import (
    absence,
    attributes,
    calls,
    control,
    items,
    operators,
    protocols,
    special_methods,
)

PROGRAM = Policy({
    # operators
    "unop": (absence.unop, operators.unop),
    "binop": (
        absence.binop, protocols.times, operators.repeated, operators.refuse_foreign,
        operators.format_text, operators.lift, protocols.beside_array, operators.refuse_words,
        operators.divide, operators.beside_sequence, operators.computed(special_methods.binop)),
    "iop": (
        absence.iop, protocols.times, protocols.into_array, operators.refuse_words,
        operators.repeated, operators.write_traced, operators.divide, operators.beside_sequence,
        operators.computed(special_methods.iop)),
    "compare": (
        absence.compare, operators.identity_of, operators.lift, protocols.beside_array,
        operators.compare_items, operators.order_items, operators.note_methods,
        operators.computed(special_methods.compare)),
    "contains": (
        absence.contains, operators.find_in_array, operators.find_among_few,
        operators.find_in_world, special_methods.contains),
    # attributes and items
    "getattr": (
        absence.owner, attributes.of_super, attributes.of_module, attributes.namespace,
        attributes.of_array, attributes.assigned, attributes.read),
    "setattr": (
        absence.setattribute, attributes.assign_traced, attributes.assign_own_array,
        special_methods.setattribute, attributes.store),
    "delattr": (attributes.delete,),
    "getitem": (
        items.of_growing, absence.getitem, items.by_index, items.of_world, items.of_array,
        items.at_position, items.read),
    "setitem": (
        items.assign_in_written, absence.setitem, items.assign_by_index, items.assign_object,
        items.assign_in_array, items.assign_in_container, special_methods.setitem),
    "delitem": (items.delete,),
    "as_index": (special_methods.as_index,),
    # calls: `called` gets the function, a tuple and a dict
    "called": (
        items.call_with_growing, absence.call, calls.hear, items.change_by_method,
        protocols.of_array_class, protocols.of_builtin,
        calls.trace_arguments, calls.ask_world, calls.call_of_library, special_methods.constructed,
        calls.call_of_wrapper, calls.make_text, calls.compute_of_sizes, calls.run),
    "resolve": (special_methods.resolve,),
    "converted": (calls.converted,),
    "frame": (calls.frame,),
    "returned": (calls.returned,),
    "bound": (absence.bound,),
    # what is taken apart, and texts
    "iterate": (absence.iterate, calls.elements),
    "starred": (absence.starred, calls.starred),
    "unpack": (absence.unpack, calls.unpacked),
    "matched": (absence.matched, calls.matched),
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
    "list_to_fill": (control.list_to_fill,),
    "reduced_where": (control.reduced_where,),
    "trying": (special_methods.trying,),
    "manager": (special_methods.manager,),
})


def hooks_of_program(trace: Trace) -> TracingHooks:
    """The hooks of the traced program; they give the trace its collaborators."""
    hooks = with_policy(PROGRAM)(trace)
    world, trace.hooks = trace.world, hooks
    world.outer_names = OuterNames(trace)
    world.containers = Containers(trace)
    world.reachable = Outside(trace)
    world.watch = Watch(hooks)
    return hooks
