"""A headless Chromium, driven by the DevTools protocol over a pipe, a static web server of a folder, and what its modules give in Node."""

import fcntl
import functools
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

from lookupc import check

missing = None if shutil.which("chromium") else "chromium is missing"


class Handler(http.server.SimpleHTTPRequestHandler):
    """What `python3 -m http.server` does, without its log; wasm_type is the MIME type of .wasm."""

    wasm_type = "application/wasm"

    def guess_type(self, path):
        return self.wasm_type if str(path).endswith(".wasm") else super().guess_type(path)

    def log_message(self, *_):
        pass


def serve(folder, wasm_type=Handler.wasm_type):
    """Serves a folder until this program ends; returns its URL."""
    handler = type("TypedHandler", (Handler,), {"wasm_type": wasm_type})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def in_node(folder, name, body, wasm_type=Handler.wasm_type):
    """What a program in Node prints as JSON; `load` is that of the module NAME.js of a page in `folder`, `base` its URL."""
    with tempfile.TemporaryDirectory() as copy:
        for module in (name, "web-model"):
            shutil.copy(f"{folder}/{module}.js", copy)
        with open(copy + "/package.json", "w", encoding="ascii") as file:
            file.write('{ "type": "module" }')
        with open(copy + "/main.js", "w", encoding="utf-8") as file:
            file.write(f"import {{ load }} from './{name}.js';\nconst base = {json.dumps(serve(folder, wasm_type))};\n{body}\n")
        result = subprocess.run(["node", copy + "/main.js"], capture_output=True, text=True, timeout=120)
    check(result.returncode == 0, result.stderr)
    return json.loads(result.stdout)


class Browser:
    """One page: `with Browser() as page: page.open(url)`."""

    def __enter__(self):
        def high(fd):  # above those that the browser has
            return fcntl.fcntl(fd, fcntl.F_DUPFD, 10)

        (to_read, self.to), (self.answers, answers_write) = os.pipe(), os.pipe()
        ends = high(to_read), high(answers_write)
        os.close(to_read), os.close(answers_write)
        self.profile = tempfile.mkdtemp()
        flags = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --remote-debugging-pipe"
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "bash", "chromium", *flags.split()]
            + [f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self.profile},
        )
        os.close(ends[0]), os.close(ends[1])
        self.number, self.session, self.buffer, self.events = 0, None, b"", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Runtime.enable")
        self.call("Log.enable")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        os.close(self.to), os.close(self.answers)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.buffer:
                read = os.read(self.answers, 1 << 16)
                if not read:
                    raise RuntimeError("chromium has ended")
                self.buffer += read
            text, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression):
        """The value of an expression in JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, condition, seconds=60):
        """Waits until the condition in JavaScript holds."""
        end = time.monotonic() + seconds
        while not self.evaluate(condition):
            if time.monotonic() > end:
                raise RuntimeError(f"{condition}: not within {seconds} s; the page says: " + self.evaluate("document.body.innerText"))
            time.sleep(0.02)

    def type(self, element, text):
        """Replaces what the element holds, as typing does."""
        self.evaluate(f"document.getElementById('{element}').focus(), document.getElementById('{element}').select()")
        self.call("Input.insertText", text=text)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Enter": 13, "Tab": 9}[key], **text)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def problems(self):
        """What went wrong so far: exceptions, and what the browser refused to load or to run."""
        found = []
        for event in self.events:
            entry = event.get("params", {}).get("entry", {})
            if event.get("method") == "Runtime.exceptionThrown" or entry.get("level") == "error":
                found.append(entry.get("text") or event["params"])
        return found
