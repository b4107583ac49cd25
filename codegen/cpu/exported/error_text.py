"""``f_error``: what a code of a function says."""

from __future__ import annotations

from collections.abc import Iterator

from ...exported.parts import ERRORS, OF_PARAMETER, CheckFailure, ExportedFunction
from ..emitter import LlvmEmitter
from .workspace import INDEX, SIZE

# The fields of the struct in C: text, file, line (and 4 bytes of padding), index, size.
_TEXT, _FILE, _LINE, _INDEX, _SIZE = 0, 8, 16, 24, 32


def error_text(function: ExportedFunction) -> tuple[LlvmEmitter, str]:
    """``i32 f_error(i32 code, ptr workspace, ptr failure)``: 0, or -1 for a code that it does not
    have and for no failure to write to."""
    em, texts = LlvmEmitter(), _Texts(function.name)
    cases = [*_cases(function)]
    em.line("br i1 " + em.value("icmp eq ptr %failure, null") + ", label %unknown, label %given")
    em.label("given")
    for at in (_INDEX, _SIZE):
        em.line(f"store i64 -1, ptr {em.offset('%failure', str(at))}")
    labels = " ".join(f"i32 {code}, label %case{k}" for k, (code, _) in enumerate(cases))
    em.line(f"switch i32 %code, label %unknown [{labels}]")
    for k, (_, failure) in enumerate(cases):
        em.label(f"case{k}")
        loc = failure.loc
        file = texts.named(loc.file) if loc is not None else "null"
        for at, value in ((_TEXT, f"ptr {texts.named(failure.text)}"), (_FILE, f"ptr {file}"),
                          (_LINE, f"i32 {loc.line if loc is not None else 0}")):
            em.line(f"store {value}, ptr {em.offset('%failure', str(at))}")
        em.line(f"br label %{'checked' if failure.text.startswith('IndexError') else 'known'}")
    _end(em)
    body = [f"define i32 @{function.name}_error(i32 %code, ptr %workspace, ptr %failure) "
            "nounwind {", "entry:", *em.lines, "}"]
    return em, "\n".join([*texts.lines, "", *body])


def _end(em: LlvmEmitter) -> None:
    em.label("checked")
    em.line(f"br i1 {em.value('icmp ne ptr %workspace, null')}, label %reported, label %known")
    em.label("reported")
    for word, at in ((INDEX, _INDEX), (SIZE, _SIZE)):
        value = em.value(f"load i64, ptr {em.offset('%workspace', str(8 * word))}")
        em.line(f"store i64 {value}, ptr {em.offset('%failure', str(at))}")
    em.line("br label %known")
    em.label("known")
    em.line("ret i32 0")
    em.label("unknown")
    em.line("ret i32 -1")


def _cases(function: ExportedFunction) -> Iterator[tuple[int, CheckFailure]]:
    yield from ((code, CheckFailure(text, None)) for code, text in ERRORS.values())
    for first, text in OF_PARAMETER.values():
        for number, parameter in enumerate(function.parameters):
            if parameter.is_array:
                yield first - number, CheckFailure(f"{parameter.name} {text}", None)
    yield from enumerate(function.failures, 1)


class _Texts:
    """Constants of C's texts, by their contents."""

    def __init__(self, name: str) -> None:
        self.lines: list[str] = []
        self._stem, self._known = f"@{name}.text", dict[str, str]()

    def named(self, text: str) -> str:
        if text not in self._known:
            name = self._known[text] = f"{self._stem}{len(self._known)}"
            data = text.encode()
            self.lines.append(f"{name} = private unnamed_addr constant [{len(data) + 1} x i8] "
                              f'c"{quoted(data)}\\00"')
        return self._known[text]


def quoted(data: bytes) -> str:
    """Bytes as LLVM writes them."""
    return "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in data)
