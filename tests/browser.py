"""Chromium without a window, driven through its debugging pipe: no package is needed, and no port is opened."""
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path


def find_browser():
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


class Browser:
    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(prefix="browser-")
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()
        # The browser expects the pipe at 3 and 4; duplicates far above keep one from closing the other.
        high = [os.dup2(to_browser, 200), os.dup2(from_browser, 201)]
        script = 'exec "$@" 3<&200 4>&201 200<&- 201>&-'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "browser", program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
             "--disable-component-update", "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile.name}", "about:blank"],
            pass_fds=high, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (to_browser, from_browser, *high):
            os.close(fd)
        self.buffer, self.last, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, EOFError):
            pass
        self.process.wait(timeout=30)
        os.close(self.write)
        os.close(self.read)
        self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _message(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.read, 1 << 20)
            if not piece:
                raise EOFError("the browser has gone")
            self.buffer += piece
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def call(self, method, **parameters):
        self.last += 1
        request = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.write, json.dumps(request).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self.last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            if "method" in message:
                self.events.append(message)

    def show_as(self, width, height, dark):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path, fragment=""):
        """Loads a page, and returns what went wrong meanwhile, a line each."""
        self.events.clear()
        failed = self.call("Page.navigate", url=Path(path).resolve().as_uri() + fragment).get("errorText")
        if failed:
            return [f"did not load: {failed}"]
        begin = time.monotonic()
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.call("Runtime.evaluate", expression="0")
            if time.monotonic() - begin > 30:
                return ["did not load within 30 seconds"]
            time.sleep(0.01)
        self.value("new Promise(done => setTimeout(done, 30))")
        return self.problems()

    def problems(self):
        found = []
        for e in self.events:
            p = e["params"]
            if e["method"] == "Runtime.exceptionThrown":
                details = p["exceptionDetails"]
                found.append("exception: " + details.get("exception", {}).get("description", details["text"]))
            elif e["method"] == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
                found.append("console: " + " ".join(str(a.get("value", a.get("description"))) for a in p["args"]))
            elif e["method"] == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
                found.append(f"log: {p['entry']['text']} {p['entry'].get('url', '')}")
            elif e["method"] == "Network.requestWillBeSent" and not p["request"]["url"].startswith(("file:", "data:", "about:")):
                found.append("request out: " + p["request"]["url"])
        return found

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def type(self, text):
        for c in text:
            self.call("Input.dispatchKeyEvent", type="keyDown", text=c, key=c)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=c)

    def links_of_frames(self):
        """Targets of the links that are seen in the frames of the page, whatever their origin, and in a list of results."""
        found = []
        for child in self.call("Page.getFrameTree")["frameTree"].get("childFrames", []):
            world = self.call("Page.createIsolatedWorld", frameId=child["frame"]["id"])["executionContextId"]
            found += self.call("Runtime.evaluate", contextId=world, returnByValue=True, expression="[...document.links].filter(a => a.offsetParent)"
                               ".map(a => a.getAttribute('href'))")["result"]["value"]
        return found + self.value("[...document.querySelectorAll('#MSearchResultsWindow a')].filter(a => a.offsetParent).map(a => a.getAttribute('href'))")

    def screenshot(self, path, whole=False):
        import base64
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole,
                            **({"clip": {**self.call("Page.getLayoutMetrics")["cssContentSize"], "scale": 1}} if whole else {}))
        Path(path).write_bytes(base64.b64decode(picture["data"]))
