"""The command line: ``python -m fusec bench | explain | view | doctor | cache``.

Exit status: 0 fine, 1 the command found a fault, 2 the command line itself is wrong.
Commands import their modules when they run, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import fusec

from .errors import FusecError

_EXPLAIN_EPILOG = """\
examples:
  python -m fusec explain prog:f --args "np.ones((3, 4)), 2.0"
  python -m fusec explain package.module:Model.step --args "model, np.zeros(8), rate=0.1"

--args is Python: what would stand between the parentheses of the call.  It sees np and the names
of the module.
"""

_VIEW_EPILOG = """\
examples:
  python -m fusec view prog:f --args "np.ones((3, 4)), 2.0"
  python -m fusec view prog:f --args "np.ones((3, 4)), 2.0" -o after.html
  python -m fusec view --diff before.html after.html -o difference.html

The function is called some times, so that the page has measured times, but where that would change
more than copies of the arguments.  The page is one file; it holds the lines of the program that it
names.
"""


class UsageError(Exception):
    """Something on the command line cannot be used; the message has the cure."""


def load_target(target: str) -> tuple[Any, Any]:
    """The module and the function of ``module:function``; dots reach into classes.

    Raises `UsageError` when there is no such module or name; exceptions of the module itself
    while it is imported pass through.
    """
    module_name, _, path = target.partition(":")
    if not module_name or not path:
        raise UsageError(f"{target!r} does not name a function: write module:function")
    module = _import(module_name)
    value: Any = module
    for part in path.split("."):
        value = _attribute(value, part, target)
    return module, value


def _import(name: str) -> Any:
    if os.getcwd() not in sys.path and "" not in sys.path:  # the console script has no cwd there
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module exists; something that it imports does not
        raise UsageError(f"there is no module {error.name!r} here or on sys.path; give the name "
                         "that an import statement would use, not a file name") from None


def _attribute(value: Any, name: str, target: str) -> Any:
    try:
        return getattr(value, name)
    except AttributeError:
        close = difflib.get_close_matches(name, dir(value), 3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise UsageError(f"{target!r}: there is no {name!r} in it{hint}") from None


def example_arguments(text: str, names: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Evaluate ``"np.ones(3), k=2.0"`` to positional and keyword arguments.

    Raises `UsageError` with the text and Python's error.
    """
    import numpy as np

    def collect(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs

    scope = {"np": np, **names, "_collect": collect}
    try:
        return eval(f"_collect({text}\n)", scope)
    except Exception as error:
        raise UsageError(f"--args {text!r}: {type(error).__name__}: {error}") from error


def explain(options: argparse.Namespace) -> int:
    """Trace and compile a function on example arguments and print the explanation."""
    module, function = load_target(options.target)
    if not callable(function):
        raise UsageError(f"{options.target!r} is not callable, it is a {type(function).__name__}")
    args, kwargs = example_arguments(options.args, vars(module))
    _check_given(options, function, args, kwargs)
    try:
        print(fusec.explain(function, *args, **kwargs))
    except FusecError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def view(options: argparse.Namespace) -> int:
    """Write the page of a function for example arguments, or that of two pages compared."""
    if bool(options.diff) == bool(options.target):
        raise UsageError("give module:function, or --diff with two pages")
    try:
        path = _compared(options) if options.diff else _viewed(options)
    except (FusecError, OSError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(path)
    if options.open:
        importlib.import_module("webbrowser").open(os.path.abspath(path))
    return 0


def _compared(options: argparse.Namespace) -> str:
    pages: Any = _import("fusec.inspect.page.comparison")
    return str(pages.save_comparison(*options.diff, options.output or "difference.html"))


def _viewed(options: argparse.Namespace) -> str:
    module, function = load_target(options.target)
    if not callable(function):
        raise UsageError(f"{options.target!r} is not callable, it is a {type(function).__name__}")
    args, kwargs = example_arguments(options.args, vars(module))
    _check_given(options, function, args, kwargs)
    name = options.target.rpartition(":")[2].rpartition(".")[2]
    jitted: Any = function if isinstance(function, fusec.Function) else fusec.jit(function)
    bound = jitted.of_instance(args[0]) if args else None
    if bound is not None:  # Model.step, with the instance that it was called on
        jitted, args = bound, args[1:]
    jitted.concrete(*args, **kwargs)
    return str(jitted.save_html(options.output or f"{name}.html", *args, **kwargs))


def _check_given(options: argparse.Namespace, function: Any, args: Any, kwargs: Any) -> None:
    """Raise `UsageError` with an example where arguments are missing."""
    import inspect

    try:
        signature = inspect.signature(function)
        signature.bind(*args, **kwargs)
    except ValueError:  # it has none that Python knows
        return
    except TypeError as error:
        names = [p.name for p in signature.parameters.values()
                 if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        example = ", ".join("an_object" if n == "self" else "np.ones(1000)" for n in names)
        given = f"with --args {options.args!r} {error}" if options.args else (
            "what becomes of it depends on its arguments")
        raise UsageError(
            f"{options.target}{signature}: {given}; give examples of what it is called with, as "
            f'--args "{example}"') from None


def doctor(options: argparse.Namespace) -> int:
    """Print the doctor's report of this machine; 1 when something that it needs is missing."""
    from .inspect.doctor import examine

    report = examine()
    print(report)
    return 0 if report.healthy else 1


def cache(options: argparse.Namespace) -> int:
    """Print where machine code and measured times are kept between processes, and how much;
    ``--clear`` deletes them."""
    from .inspect import kept_files

    print("\n".join(kept_files.clear() if options.clear else kept_files.listing()))
    return 0


_BENCH_HELP = "measure programs, eager against compiled"
Command = Callable[[argparse.Namespace], int]


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """The parser; the options of ``bench`` are added when that is the command to run."""
    parser = argparse.ArgumentParser("python -m fusec", description="fusec's command line.")
    parser.add_argument("--version", action="version", version=f"fusec {fusec.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    _add_bench(commands, full=command == "bench")
    sub = commands.add_parser(
        "explain", help="show graph, passes, kernels and reasons for one function",
        epilog=_EXPLAIN_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("target", help="module:function")
    sub.add_argument("--args", default="", help="example arguments, as Python")
    sub.set_defaults(run_command=explain)
    sub = commands.add_parser(
        "view", help="write one HTML file that shows every decision, or compares two of them",
        epilog=_VIEW_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("target", nargs="?", default="", help="module:function")
    sub.add_argument("--args", default="", help="example arguments, as Python")
    sub.add_argument("--diff", nargs=2, metavar="PAGE", help="two pages to compare")
    sub.add_argument("-o", "--output", default="", help="the file; by default function.html")
    sub.add_argument("--open", action="store_true", help="show it in a browser")
    sub.set_defaults(run_command=view)
    sub = commands.add_parser("doctor", help="versions, CPU, threads, and what is missing")
    sub.set_defaults(run_command=doctor)
    sub = commands.add_parser("cache", help="what is kept on disk, machine code and measured times")
    sub.add_argument("--clear", action="store_true", help="delete it")
    sub.set_defaults(run_command=cache)
    return parser


def _add_bench(commands: Any, *, full: bool) -> None:
    if full:
        from .bench import cli

        commands_before = set(commands.choices)
        cli.add_parser(commands)
        (name,) = set(commands.choices) - commands_before
        commands.choices[name].set_defaults(run_command=cli.run)
    else:
        commands.add_parser("bench", help=_BENCH_HELP, add_help=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = build_parser(arguments[0] if arguments else "")
    options = parser.parse_args(arguments)
    command: Command = options.run_command
    try:
        return command(options)
    except UsageError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
