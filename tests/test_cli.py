"""The command line: parsing, targets, example arguments, doctor."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec import __main__ as cli
from fusec.core.versions import Requirement
from fusec.inspect import doctor

MODULE = "import numpy as np\nSIZE = 3\ndef double(x): return x * 2\nclass K:\n  def m(self): ...\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"cli_prog_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / f"{name}_broken.py").write_text("import surely_absent_package")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.mark.alone
def test_help_is_quick_and_names_the_commands() -> None:
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "fusec", "--help"], capture_output=True, text=True,
                          check=True)
    assert time.perf_counter() - start < 5
    assert all(name in done.stdout for name in ("bench", "explain", "doctor"))


def test_help_imports_no_compiler() -> None:
    code = ("import sys; from fusec.__main__ import build_parser; build_parser().format_help();"
            "print([m for m in ('numba', 'llvmlite', 'rich', 'scipy') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["explain"]])
def test_wrong_command_lines_exit_with_2(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(argv)
    assert caught.value.code == 2
    assert "usage: python -m fusec" in capsys.readouterr().err


def test_targets(module: str) -> None:
    loaded, function = cli.load_target(f"{module}:double")
    assert (loaded.SIZE, function(2)) == (3, 4)
    assert cli.load_target(f"{module}:K.m")[1].__name__ == "m"


@pytest.mark.parametrize(
    ("target", "message"),
    [("MODULE", "does not name a function: write module:function"),
     ("MODULE:", "does not name a function"),
     ("MODULE:dubble", "there is no 'dubble' in it; did you mean double?"),
     ("absent_module_x:f", "there is no module 'absent_module_x' here or on sys.path")],
)
def test_wrong_targets(module: str, target: str, message: str) -> None:
    with pytest.raises(cli.UsageError) as caught:
        cli.load_target(target.replace("MODULE", module))
    assert message in str(caught.value)


def test_an_import_error_inside_the_module_is_its_own(module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="surely_absent_package"):
        cli.load_target(f"{module}_broken:f")


def test_example_arguments() -> None:
    args, kwargs = cli.example_arguments("np.ones(SIZE), 2.0, k=[1]", {"SIZE": 3})
    np.testing.assert_array_equal(args[0], np.ones(3))
    assert (args[1], kwargs) == (2.0, {"k": [1]})
    assert cli.example_arguments("", {}) == ((), {})
    with pytest.raises(cli.UsageError, match=r"--args 'nope\(3\)': NameError: name 'nope'"):
        cli.example_arguments("nope(3)", {})
    with pytest.raises(cli.UsageError, match="SyntaxError"):
        cli.example_arguments("1 +", {})


def test_explain_refuses_what_is_not_callable(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["explain", f"{module}:SIZE"])
    assert caught.value.code == 2
    assert "is not callable, it is a int" in capsys.readouterr().err


def test_doctor_reads_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "cannot be read" not in text
    assert f"numpy {np.__version__}" in text
    assert text.endswith("fusec has what it needs\n")
    titles = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert titles[:-1] == ["versions", "cpu", "threads", "machine code", "runtime", "devices",
                           "packages", "settings"]
    assert not {"pytest", "ruff", "mypy", "jax"} & set(re.findall(r"\w+", text))


def test_doctor_names_the_missing_packages() -> None:
    needs = [Requirement("numpy", ">=99", ""), Requirement("surely-absent", ">=1", "bench"),
             Requirement("numpy", "", "bench"), Requirement("surely-absent", "", "dev")]
    assert doctor.package_lines(needs) == [
        f"fusec itself: missing numpy>=99 (has {np.__version__}); run: pip install 'numpy>=99'",
        "python -m fusec bench: missing surely-absent>=1; run: pip install 'surely-absent>=1'",
    ]
    assert doctor.package_lines([Requirement("numpy", ">=2", "")]) == ["fusec itself: complete"]


def test_doctor_names_what_is_untested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "python_bounds", lambda: ">=3.8,<3.9")
    lines = list(doctor.version_lines([Requirement("numpy", ">=1,<2", "")]))
    assert f"numpy {np.__version__}: UNTESTED, fusec is tested with >=1,<2" in lines
    assert lines[1].endswith(": UNTESTED, fusec is tested with >=3.8,<3.9")
    assert "UNTESTED" not in "".join(lines[2:3] + lines[4:])


def test_these_versions_are_tested_ones(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["doctor"])
    assert "UNTESTED" not in capsys.readouterr().out


def test_doctor_goes_on_when_a_part_fails() -> None:
    def fail() -> list[str]:
        raise OSError("no such thing")

    assert doctor._guarded(fail) == ["cannot be read: OSError: no such thing"]

    def fail_later() -> Iterator[str]:
        yield "first"
        raise OSError("no such thing")

    assert doctor._guarded(fail_later)[0] == "first"
    report = doctor.DoctorReport((doctor.Section("a", ("b",)),), False)
    assert str(report) == "a\n  b\n\nfusec lacks what it needs: see above"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"fusec {fusec.__version__}\n")
