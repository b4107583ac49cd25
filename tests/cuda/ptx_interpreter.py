"""An interpreter of the PTX that NVRTC makes of elementwise kernels, all threads at once.

What NVRTC makes of a source shows on no emulated device, only in its PTX.  A register is an array
with an element for each thread; the threads at the least instruction do it, the others wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from fusec.ops.exact_fma import exact_fma

_OF_TYPE = {**{f"{k}{n}": np.dtype(f"{'i' if k == 's' else 'u'}{n // 8}")
               for k in "sub" for n in (8, 16, 32, 64)},
            "f32": np.dtype("f4"), "f64": np.dtype("f8"), "pred": np.dtype("?")}
_OF_PREFIX = {"p": "pred", "rs": "b16", "r": "b32", "f": "f32", "fd": "f64", "rd": "b64"}
_REGISTER = re.compile(r"%(rs|rd|fd|r|f|p)\d+$")
_WORD = re.compile(r"\{[^}]*\}|\[[^]]*\]|[^\s,{}]+")
_FAR = 40  # bits of an address within a buffer
Array = np.ndarray


def run(ptx: str, arguments: Sequence[int | Array], threads: int, of_block: int) -> None:
    """Run the module's only entry; arrays are its pointers' buffers, bytes that it changes."""
    _Run(ptx, arguments, threads, of_block).run()


class _Run:
    def __init__(
        self, ptx: str, arguments: Sequence[int | Array], threads: int, of_block: int
    ) -> None:
        self.buffers = [a for a in arguments if isinstance(a, np.ndarray)]
        self.count, self.code, self.labels = threads, list[list[str]](), dict[str, int]()
        self.registers: dict[str, Array] = {}
        number = np.arange(threads, dtype=np.uint32)
        self.special = {"%tid.x": number % np.uint32(of_block), "%ntid.x": of_block,
                        "%ctaid.x": number // np.uint32(of_block),
                        "%nctaid.x": -(-threads // of_block)}
        self.params = self._parse(ptx, arguments)
        self.carry = np.zeros(threads, np.uint64)

    def _parse(self, ptx: str, arguments: Sequence[int | Array]) -> dict[str, int]:
        head, body = ptx[ptx.index(".entry"):].split("\n{\n", 1)
        names = re.findall(r"\.param \.\w+ (\w+)", head)
        for line in body.split("\n}\n")[0].splitlines():
            text = line.partition("//")[0].strip()
            if text.endswith(":"):
                self.labels[text[:-1]] = len(self.code)
            elif text.endswith(";") and not text.startswith("."):
                self.code.append(_WORD.findall(text[:-1]))
        places = iter(range(1, 1 + len(self.buffers)))
        return {name: next(places) << _FAR if isinstance(a, np.ndarray) else int(a)
                for name, a in zip(names, arguments, strict=True)}

    def run(self) -> None:
        at = np.zeros(self.count, np.int64)  # of each thread
        while (number := int(at.min())) < len(self.code):
            who = at == number
            target = self._step(self.code[number], who)
            at[who] = number + 1
            if target is not None:
                where, to = target
                at[where] = to

    # -- one instruction

    def _step(self, words: list[str], who: Array) -> tuple[Array, int] | None:
        if words[0].startswith("@"):
            negated = words[0].startswith("@!")
            held = self._get(words[0].lstrip("@!"), "pred") ^ negated
            who, words = who & held, words[1:]
        op, *types = words[0].split(".")
        if op == "bra":
            return who, self.labels[words[1]]
        if op == "ret":
            return who, len(self.code)
        if op in ("ld", "st"):
            (self._load if op == "ld" else self._store)(types, words[1:], who)
            return None
        with np.errstate(all="ignore"):
            value = _rule(op)(self, types, words[1:])
        self._set(words[1], value, who)
        return None

    def _get(self, word: str, kind: str) -> Array:
        """An operand as values of a type."""
        dtype = _OF_TYPE[kind]
        if word in self.special:
            return np.broadcast_to(np.asarray(self.special[word], np.uint32), self.count)
        if not word.startswith("%"):
            return np.broadcast_to(_immediate(word, dtype), self.count)
        bits = self.registers[word]
        if bits.dtype == dtype:
            return bits
        if bits.itemsize > dtype.itemsize:
            bits = bits.view(f"u{bits.itemsize}").astype(f"u{dtype.itemsize}")
        return bits.view(dtype)

    def _set(self, name: str, value: Array, who: Array) -> None:
        if name.startswith("{"):
            half = value.itemsize // 2
            parts = np.ascontiguousarray(value).view(f"u{half}").reshape(-1, 2)
            for number, part in enumerate(re.findall(r"[%\w]+", name)):
                self._set(part, parts[:, number].copy(), who)
            return
        found = _REGISTER.match(name)
        dtype = _OF_TYPE[_OF_PREFIX[found[1]]] if found else value.dtype
        if value.dtype != dtype:
            if value.itemsize < dtype.itemsize:
                value = value.astype(f"{value.dtype.kind}{dtype.itemsize}")
            value = np.ascontiguousarray(value).view(dtype)
        before = self.registers.get(name)
        self.registers[name] = value.copy() if before is None else np.where(who, value, before)

    # -- memory

    def _load(self, types: list[str], words: list[str], who: Array) -> None:
        names, kind = re.findall(r"[%\w]+", words[0]), _OF_TYPE[types[-1]]
        if types[0] == "param":
            value = np.asarray(self.params[words[1].strip("[]")] & (2**64 - 1), np.uint64)
            self._set(names[0], np.full(self.count, value).astype(
                f"u{kind.itemsize}").view(kind), who)
            return
        buffer, places = self._places(words[1], who)
        for number, name in enumerate(names):
            value = np.zeros(self.count, kind)
            bytes_of = places[:, None] + np.arange(kind.itemsize) + number * kind.itemsize
            value[who] = buffer[bytes_of].view(kind)[:, 0]
            self._set(name, value, who)

    def _store(self, types: list[str], words: list[str], who: Array) -> None:
        kind = _OF_TYPE[types[-1]]
        buffer, places = self._places(words[0], who)
        for number, name in enumerate(re.findall(r"[%\w.]+", words[1])):
            value = np.ascontiguousarray(self._get(name, types[-1])[who])
            bytes_of = places[:, None] + np.arange(kind.itemsize) + number * kind.itemsize
            buffer[bytes_of] = value.view(np.uint8).reshape(-1, kind.itemsize)

    def _places(self, word: str, who: Array) -> tuple[Array, Array]:
        """The buffer, and each thread's byte in it."""
        base, _, offset = word.strip("[]").partition("+")
        address = self._get(base, "u64")[who] + np.uint64(int(offset or 0) % 2**64)
        number = {*map(int, address >> np.uint64(_FAR))}
        assert len(number) == 1, "threads read several buffers"
        return self.buffers[number.pop() - 1], (
            address & np.uint64((1 << _FAR) - 1)).astype(np.int64)


def _immediate(word: str, dtype: np.dtype) -> Array:
    if word.startswith(("0f", "0d")):
        bits = int(word[2:], 16)
        return np.array(bits, f"u{4 if word[1] == 'f' else 8}").view(f"f{len(word[2:]) // 2}")
    value = int(word.rstrip("U"), 0)
    if dtype.kind == "b":
        return np.array(value != 0)
    return np.array(value % (1 << 8 * dtype.itemsize), f"u{dtype.itemsize}").view(dtype)


# ------------------------------------------------------------------------------- rules by opcode

Rule = Callable[[_Run, list[str], list[str]], Array]


def _rule(op: str) -> Rule:
    return _RULES[op]


def _plain(function: Callable[..., Array]) -> Rule:
    """Of operands of the instruction's type, which the result has, too."""
    def rule(run: _Run, types: list[str], words: list[str]) -> Array:
        return np.asarray(function(*(run._get(w, types[-1]) for w in words[1:]))).astype(
            _OF_TYPE[types[-1]], copy=False)

    return rule


def _shift(function: Callable[..., Array]) -> Rule:
    def rule(run: _Run, types: list[str], words: list[str]) -> Array:
        value, count = run._get(words[1], types[-1]), run._get(words[2], "u32").astype(np.int64)
        bits = 8 * value.itemsize
        shifted = function(value, np.minimum(count, bits - 1).astype(value.dtype))
        beyond = shifted >> value.dtype.type(bits - 1) if value.dtype.kind == "i" else 0
        return np.where(count < bits, shifted, beyond).astype(value.dtype)

    return rule


_COMPARED = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
             "gt": np.greater, "ge": np.greater_equal}


def _setp(run: _Run, types: list[str], words: list[str]) -> Array:
    a, b = (run._get(w, types[-1]) for w in words[1:3])
    name, is_float = types[0], a.dtype.kind == "f"
    either = np.isnan(a) | np.isnan(b) if is_float else np.zeros(len(a), bool)
    if name in ("nan", "num"):
        return either == (name == "nan")
    ordered = _COMPARED[name.removesuffix("u") if is_float else name](a, b) & ~either
    return ordered | (either & (name.endswith("u") and is_float))


def _cvt(run: _Run, types: list[str], words: list[str]) -> Array:
    *modes, to, of = types
    value, kind = run._get(words[1], of), _OF_TYPE[to]
    whole = {"rni": np.rint, "rmi": np.floor, "rpi": np.ceil, "rzi": np.trunc}
    rounding = next((whole[m] for m in modes if m in whole), None)
    if rounding is not None:
        value = rounding(value)
    return value.astype(kind)


def _mov(run: _Run, types: list[str], words: list[str]) -> Array:
    if not words[1].startswith("{"):
        return run._get(words[1], types[-1])
    half = f"b{8 * _OF_TYPE[types[-1]].itemsize // 2}"
    parts = [run._get(w, half) for w in re.findall(r"[%\w]+", words[1])]
    return np.ascontiguousarray(np.stack(parts, axis=1)).view(_OF_TYPE[types[-1]])[:, 0]


def _selp(run: _Run, types: list[str], words: list[str]) -> Array:
    return np.where(run._get(words[3], "pred"), run._get(words[1], types[-1]),
                    run._get(words[2], types[-1]))


def _integers(function: Callable[..., int]) -> Rule:
    """Of Python's integers, element by element."""
    def rule(run: _Run, types: list[str], words: list[str]) -> Array:
        kind = _OF_TYPE[types[-1]]
        columns = [run._get(w, types[-1]) for w in words[1:]]
        bits = 8 * kind.itemsize
        results = [function(bits, *map(int, row)) % (1 << bits)
                   for row in zip(*columns, strict=True)]
        return np.array(results, f"u{kind.itemsize}").view(kind)

    return rule


def _quotient(bits: int, a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _rest(bits: int, a: int, b: int) -> int:
    return 0 if b == 0 else a - b * _quotient(bits, a, b)


def _inserted(bits: int, a: int, b: int, at: int, length: int) -> int:
    mask = ((1 << length) - 1) << at
    return (b & ~mask) | ((a << at) & mask)


def _permuted(bits: int, a: int, b: int, selector: int) -> int:
    both = ((b & 0xFFFFFFFF) << 32 | (a & 0xFFFFFFFF)).to_bytes(8, "little")
    picked = []
    for n in range(4):
        part = selector >> 4 * n & 15
        byte = both[part & 7]
        picked.append((255 if byte & 128 else 0) if part & 8 else byte)
    return int.from_bytes(bytes(picked), "little")


def _product(run: _Run, types: list[str], words: list[str]) -> Array:
    if types[0] == "hi":
        return _integers(lambda bits, a, b: a * b >> bits)(run, types, words)
    if types[0] == "wide":
        wide = f"{types[-1][0]}{2 * int(types[-1][1:])}"
        a, b = (run._get(w, types[-1]).astype(_OF_TYPE[wide]) for w in words[1:])
        return a * b
    return _plain(np.multiply)(run, types, words)


def _fma(run: _Run, types: list[str], words: list[str]) -> Array:
    a, b, c = (run._get(w, types[-1]) for w in words[1:])
    if types[0] == "rz":  # an estimate's correction, where the product is exact
        return (a.astype("f8") * b.astype("f8") + c.astype("f8")).astype(a.dtype)
    return exact_fma(a, b, c)


def _mad(run: _Run, types: list[str], words: list[str]) -> Array:
    return _plain(lambda a, b, c: a * b + c)(run, types, words)


def _carried(sign: int, takes: bool) -> Rule:
    def rule(run: _Run, types: list[str], words: list[str]) -> Array:
        gives = "cc" in types
        values, carries = [], []
        for a, b, carry in zip(*(run._get(w, "u64") for w in words[1:]), run.carry, strict=True):
            whole = int(a) + sign * (int(b) + (int(carry) if takes else 0))
            values.append(whole % 2**64)
            carries.append(int(not 0 <= whole < 2**64))
        if gives:
            run.carry = np.array(carries, np.uint64)
        return np.array(values, np.uint64)

    return rule


def _sum(sign: int) -> Rule:
    plain = _plain(np.add if sign > 0 else np.subtract)
    carried = _carried(sign, takes=False)
    return lambda run, types, words: (carried if "cc" in types else plain)(run, types, words)


_RULES: dict[str, Rule] = {
    "add": _sum(1), "sub": _sum(-1), "addc": _carried(1, True), "subc": _carried(-1, True),
    "mul": _product, "mad": _mad, "fma": _fma,
    "div": lambda run, types, words: (_integers(_quotient) if types[-1][0] in "su" else _plain(
        np.divide))(run, types, words),
    "rem": _integers(_rest), "rcp": _plain(lambda x: x.dtype.type(1) / x), "sqrt": _plain(np.sqrt),
    # estimates, exact here
    "ex2": _plain(np.exp2), "lg2": _plain(np.log2), "sin": _plain(np.sin), "cos": _plain(np.cos),
    "rsqrt": _plain(lambda x: x.dtype.type(1) / np.sqrt(x)),
    "abs": _plain(np.abs), "neg": _plain(np.negative), "min": _plain(np.minimum),
    "max": _plain(np.maximum), "and": _plain(np.bitwise_and), "or": _plain(np.bitwise_or),
    "xor": _plain(np.bitwise_xor), "not": _plain(np.invert), "shl": _shift(np.left_shift),
    "shr": _shift(np.right_shift), "setp": _setp, "selp": _selp, "cvt": _cvt, "mov": _mov,
    "cvta": _plain(lambda x: x), "bfi": _integers(_inserted), "prmt": _integers(_permuted),
    "clz": _integers(lambda bits, x: bits - (x % (1 << bits)).bit_length()),
    "copysign": lambda run, types, words: np.copysign(
        run._get(words[2], types[-1]), run._get(words[1], types[-1])),
}
