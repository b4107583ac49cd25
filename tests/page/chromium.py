"""A headless Chromium, driven by its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
KEYS = {"ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39, "Enter": 13,
        "Escape": 27, "Tab": 9}


def missing() -> str:
    """The reason why there can be no browser; empty where there can."""
    if not any(map(shutil.which, NAMES)):
        return "no Chromium: apt-get install chromium"
    try:
        import websocket  # noqa: F401
    except ImportError:
        return "no websocket-client: pip install websocket-client"
    return ""


class Chromium:
    """One page in a browser.  ``errors``: what its console said, and exceptions of scripts."""

    def __init__(self, width: int = 1500, height: int = 950) -> None:
        import websocket

        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        program = next(filter(None, map(shutil.which, NAMES)))
        self._process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--remote-debugging-port=0", "--remote-allow-origins=*", "--disable-extensions",
             "--force-color-profile=srgb", "--disable-dev-shm-usage", "--hide-scrollbars",
             f"--window-size={width},{height}", f"--user-data-dir={self._folder.name}",
             "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.errors: list[str] = []
        self._number = 0
        self._socket = websocket.create_connection(self._address(), timeout=60)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def _address(self) -> str:
        port = Path(self._folder.name, "DevToolsActivePort")
        for _ in range(300):
            if port.exists() and (lines := port.read_text().splitlines()):
                with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json") as reply:
                    pages = [p for p in json.load(reply) if p["type"] == "page"]
                if pages:
                    return str(pages[0]["webSocketDebuggerUrl"])
            time.sleep(0.1)
        raise TimeoutError("Chromium has not started in 30 s")

    def call(self, method: str, **parameters: Any) -> Any:
        """The reply to a command."""
        self._number += 1
        self._socket.send(json.dumps(
            {"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        method, given = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
            self.errors.append(str([a.get("value") for a in given["args"]]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.errors.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            address = given["request"]["url"]
            if not address.startswith(("file:", "data:", "blob:", "about:")):
                self.errors.append(f"the page asks for {address}")

    def run(self, script: str) -> Any:
        """The value of a script, which may be a promise."""
        reply = self.call("Runtime.evaluate", expression=script, awaitPromise=True,
                          returnByValue=True)
        if "exceptionDetails" in reply:
            details = reply["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return reply["result"].get("value")

    def open(self, path: str | os.PathLike[str], fragment: str = "") -> float:
        """Open a file; seconds until its first view is shown."""
        self.call("Page.navigate", url="about:blank")
        start = time.perf_counter()
        self.call("Page.navigate", url=f"{Path(path).absolute().as_uri()}{fragment}")
        self.until("document.documentElement && document.documentElement.dataset.ready")
        return time.perf_counter() - start

    def until(self, condition: str, seconds: float = 20.0) -> None:
        """Wait until a condition holds."""
        end = time.perf_counter() + seconds
        while not self.run(f"Boolean({condition})"):
            if time.perf_counter() > end:
                raise TimeoutError(f"not in {seconds} s: {condition}; errors: {self.errors}")
            time.sleep(0.02)

    def view(self, name: str, **parts: Any) -> None:
        """Go to a view by its address."""
        words = "&".join(f"{key}={value}" for key, value in parts.items())
        self.run(f"location.hash = '#{name}?{words}'")
        self.until(f"document.getElementById('main').className === '{name}'")
        self.settled()

    def settled(self) -> None:
        """Wait for what is being drawn."""
        self.run("new Promise(done => setTimeout(() => requestAnimationFrame(() => "
                 "requestAnimationFrame(done)), 15))")

    def press(self, key: str, text: str = "") -> None:
        """A key, as from a keyboard."""
        number = KEYS.get(key, ord(key[0].upper()))
        common = {"key": key, "code": key, "windowsVirtualKeyCode": number}
        letters = text or (key if len(key) == 1 else "\r" if key == "Enter" else "")
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **(
            {"text": letters} if letters else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.settled()

    def click(self, x: float, y: float, count: int = 1) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                      clickCount=count)
        self.settled()

    def move(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settled()

    def at(self, selector: str) -> tuple[float, float]:
        """The middle of the first element that a selector finds, which is brought into view."""
        place = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "if (!e) return null; e.scrollIntoView({block: 'center'});"
            "const r = e.getClientRects()[0];"
            "return [r.left + r.width / 2, r.top + r.height / 2]; })()")
        if place is None:
            raise LookupError(f"no element: {selector}")
        return place[0], place[1]

    def picture(self, path: str | os.PathLike[str]) -> None:
        """The page as a PNG file."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()
