"""The page itself: one HTML file with its data, its scripts and their licences.

Each section of the document is a script element of its own that holds its JSON, compressed with
gzip, in base64: a browser reads it when it is looked at, and `read` reads it back.
"""

from __future__ import annotations

import base64
import errno
import gzip
import html
import json
import os
import re
import uuid
import zlib
from importlib import resources
from pathlib import Path
from typing import Any

import fusec
from fusec.errors import user_error

from .document import FORMAT
from .first_screen import first_screen

Json = dict[str, Any]
# Scripts in the order in which they run; each of ours is a file that can be read by itself.
LIBRARIES = ("d3-dispatch", "d3-timer", "d3-ease", "d3-color", "d3-interpolate", "d3-selection",
             "d3-transition", "d3-drag", "d3-zoom", "dagre", "diff")
SCRIPTS = ("data", "texts", "shell", "overview", "passes", "layers", "graph", "drawing", "kernels",
           "roofline", "runs", "compared", "start")
_MAPS = "//# sourceMappingURL="  # files that are not in the page, which debuggers would ask for
_HEAD = '<meta name="generator" content="fusec'
_SECTION = re.compile(
    r'<script type="application/gzip" data-section="([\w/.-]+)">([\w+/=]*)</script>')
_MARK = re.compile(r'<meta name="generator" content="fusec ([^"]*), page (\d+)">')


def page_text(sections: Json) -> str:
    """The whole file."""
    name = sections["head"]["function"]
    data = "\n".join(_section(key, part) for key, part in sections.items())
    scripts = "\n".join(
        [*(_script(f"vendor/{each}.min.js") for each in LIBRARIES),
         *(_script(f"web/{each}.js") for each in SCRIPTS)])
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'{_HEAD} {fusec.__version__}, page {FORMAT}">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{html.escape(name)}: fusec</title>\n<style>\n{_file('web/page.css')}</style>\n"
            f"</head>\n<body>\n{_file('web/body.html')}"
            f'<noscript><main>{first_screen(sections, False)}</main></noscript>\n{data}\n'
            f"<!--\n{_file('vendor/LICENSES.txt')}-->\n{scripts}\n</body>\n</html>\n")


def _section(key: str, part: Any) -> str:
    text = json.dumps(part, separators=(",", ":"), default=str, allow_nan=False)
    packed = base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
    return f'<script type="application/gzip" data-section="{key}">{packed}</script>'


def _script(path: str) -> str:
    lines = [line for line in _file(path).splitlines() if not line.startswith(_MAPS)]
    return "<script>\n{}\n</script>".format("\n".join(lines))


def _file(path: str) -> str:
    return resources.files("fusec.inspect.page").joinpath(path).read_text("utf-8")


def save(path: str | os.PathLike[str], sections: Json) -> Path:
    """Write the page; a file that is there is replaced when the new one is whole.

    Raises ``OSError`` where that cannot be written, ``TypeError`` for what is no path.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise user_error(TypeError, f"a page cannot be written to {path!r}: it is no path", None,
                         'give a file\'s name first: f.save_html("f.html", x)')
    target = Path(path)
    text = page_text(sections)
    try:
        _write(target.resolve(), text)  # what a link leads to
    except (OSError, ValueError, RuntimeError) as error:  # a NUL character; links in a circle
        kind = type(error) if isinstance(error, OSError) else OSError
        raise user_error(
            kind, f"a page cannot be written to {os.fspath(path)!r}: "
            f"{getattr(error, 'strerror', None) or error}", None,
            _CURES.get(getattr(error, "errno", None) or 0, 'give a file in a folder that is there: '
                       'f.save_html("f.html")')) from None
    return target


_CURES = {**dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS),
                          "give a file in a folder that you may write to"),
          **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
                          "free some room there, or give a file on another disk")}


def _write(target: Path, text: str) -> None:
    if target.is_dir():
        raise IsADirectoryError("it is a folder")
    if target.exists() and not target.is_file():  # a device or a pipe stays what it is
        target.write_text(text, "utf-8")
        return
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        with open(temporary, "x", encoding="utf-8") as file:  # who may read it, umask says
            file.write(text)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str]) -> Json:
    """The sections of a page.

    Raises ``OSError`` where there is no such file, ``ValueError`` for a file that is no page of
    fusec's, or of another format.
    """
    try:
        text = Path(path).read_text("utf-8")
    except UnicodeDecodeError:
        text = ""
    except OSError as error:
        raise user_error(
            type(error), f"{os.fspath(path)!r} cannot be read: {error.strerror or error}", None,
            "give a page that save_html or python -m fusec view has written") from None
    mark = _MARK.search(text[:2_000])
    if mark is None:
        raise user_error(ValueError, f"{os.fspath(path)!r} is no page of fusec's", None,
                         "give a page that save_html or python -m fusec view has written")
    if int(mark[2]) != FORMAT:
        raise user_error(
            ValueError, f"{os.fspath(path)!r} is a page of another format", None,
            "write it anew with this version of fusec",
            values=[("given", f"format {mark[2]}, of fusec {mark[1]}"),
                    ("read", f"format {FORMAT}, of fusec {fusec.__version__}")])
    try:
        if not text.rstrip().endswith("</html>"):
            raise ValueError("its end is missing")
        sections = {key: json.loads(gzip.decompress(base64.b64decode(data)))
                    for key, data in _SECTION.findall(text)}
        if "head" not in sections:
            raise ValueError("its first section is missing")
        return sections
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise user_error(ValueError, f"{os.fspath(path)!r} is damaged: {error}", None,
                         "write it anew") from None
