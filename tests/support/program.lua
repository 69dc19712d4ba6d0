-- Runs lookupc the way a user does, in a folder of its own, and reads what it says on each of its two outputs.
local check = require "tests.support.check"
local host = require "host"
local library_cache = require "harness.base.library_cache"
local process = require "process"

local program = {
    root = assert(process.run({ "pwd" })).output:gsub("\n$", ""), -- the repository's folder
}

local folders = 0

-- A new, empty folder.
function program.folder()
    folders = folders + 1
    local path = process.temporary_directory() .. "/" .. folders
    local made = assert(process.run { "mkdir", path })
    if made.status ~= 0 then error(made.output, 0) end
    return path
end

-- Makes `folder` a cache of its own, which shares precompiled headers with other tests. Returns it.
function program.cache(folder)
    local shared = library_cache.folder()
    local script = 'mkdir -p "$1/headers" "$2/lookupc" && ln -s "$1/headers" "$2/lookupc/headers"'
    local made = shared and assert(process.run { "bash", "-c", script, "bash", shared, folder })
    if made and made.status ~= 0 then error(made.output, 0) end
    return folder
end

-- A folder of its own for a tuning, with a store and a cache of its own.
function program.tuning_place()
    local folder = program.folder()
    return {
        folder = folder,
        log = folder .. "/tuned.jsonl",
        tuned = folder .. "/tuned.lua",
        store = folder .. "/store.sqlite",
        env = { LOOKUPC_STORE = folder .. "/store.sqlite", XDG_CACHE_HOME = program.cache(folder) },
    }
end

-- Runs lookupc with `words`; options: directory, env, limit (shell commands in front of it, such as ulimit).
-- Returns { status, output, errors }.
function program.run(words, options)
    options = options or {}
    local errors = process.temporary_directory() .. "/errors"
    local script = (options.limit and options.limit .. "; " or "") .. 'exec "$@" 2>"$0"'
    local result = assert(
        process.run(
            { "bash", "-c", script, errors, check.lookupc, table.unpack(words) },
            { directory = options.directory, env = options.env, timeout = 120 }
        )
    )
    if result.timed_out then error("lookupc " .. table.concat(words, " ") .. ": took more than 120 seconds", 2) end
    return { status = result.status, output = result.output, errors = assert(host.read(errors)) }
end

-- A run that must succeed without a word on standard error; returns what it prints.
function program.works(words, options)
    local result = program.run(words, options)
    if result.status ~= 0 or result.errors ~= "" then
        error(
            string.format("lookupc %s: exit status %d: %s", table.concat(words, " "), result.status, result.errors),
            2
        )
    end
    return result.output
end

-- A run that must end with `status`, one line on standard error that holds `fragment` and no place in lookupc's own
-- Lua, and nothing on standard output.
function program.refuses(status, fragment, words, options)
    local result = program.run(words, options)
    local one_line = result.errors:find("^lookupc[^\n]*\n$")
        and not result.errors:find("^lookupc: %a+/%a+%.lua:%d+: [^\n]*: ")
    if result.status ~= status or result.output ~= "" or not one_line or not result.errors:find(fragment, 1, true) then
        error(
            string.format(
                "lookupc %s: exit status %d, output %q, errors %q: expected status %d and one line with %q",
                table.concat(words, " "),
                result.status,
                result.output,
                result.errors,
                status,
                fragment
            ),
            2
        )
    end
end

-- A checkout of its own: for --tree.
function program.tree()
    local tree = program.folder()
    assert(process.run({ "cp", "-r", "commands", "gen", "harness", "templates", "LICENSE", tree }).status == 0)
    return tree
end

-- One in which tune gets its times from tests/support/measured.lua instead of measuring.
function program.quiet_tree()
    local tree = program.tree()
    assert(host.write_file(tree .. "/harness/measure/measure.lua", assert(host.read "tests/support/measured.lua")))
    return tree
end

-- The text of a template in which `from` is `to`, wherever it stands there. Raises one line where it does not: tests
-- that take faults in turn look for all of them every time.
function program.changed(template, from, to)
    local text = assert(host.read(template))
    local changed = text:gsub(from:gsub("%p", "%%%0"), (to:gsub("%%", "%%%%")))
    if changed == text then error(template .. ": has no " .. from, 2) end
    return changed
end

-- A checkout in which it is so.
function program.changed_tree(template, from, to)
    local tree, changed = program.tree(), program.changed(template, from, to)
    assert(host.write_file(tree .. "/" .. template, changed))
    return tree
end

-- Runs a Python script with NumPy that finds `...` in sys.argv[1:] and has struct, json, np and safetensors helpers:
-- load(path) -> { name: (dtype, array) }, save(path, the same).
local prelude = [[
import json, struct, sys
import numpy as np

def widths(dtype):
    return {"F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8",
            "I8": "i1", "U8": "u1", "F8_E4M3": "u1", "I64": "<i8"}[dtype]

def load(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    def array(entry):
        raw = np.frombuffer(data[slice(*entry["data_offsets"])], widths(entry["dtype"]))
        return entry["dtype"], raw.reshape(entry["shape"]).copy()
    return {name: array(entry)
            for name, entry in header.items() if name != "__metadata__"}

def save(path, tensors, metadata=None):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, array) in tensors.items():
        raw = array.astype(widths(dtype)).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)

]]

function program.python(script, ...)
    local result = assert(process.run { "/usr/bin/python3", "-c", prelude .. script, ... })
    if result.status ~= 0 then error(result.output, 2) end
    return result.output
end

-- The text of the page in file `path`, which has so many drawings and a table. Raises an error if tags are not closed
-- in order, something comes from elsewhere, a drawing has no name or a text is smaller than 12 pixels.
function program.page(path, drawings)
    return program.python(
        [=[
import re
from html.parser import HTMLParser

class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.named, self.text = [], [], 0, ""
    def handle_starttag(self, tag, attributes):
        if tag == "title" and self.open[-1] == "svg":
            self.named += 1
        self.seen.append(tag)
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "srcset", "data", "xlink:href") or name.startswith("on"):
                sys.exit("<%s %s=%r>" % (tag, name, value))
    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()
    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            sys.exit("</%s> closes something else" % tag)
    def handle_data(self, data):
        self.text += data

text = open(sys.argv[1], encoding="utf-8").read()
page = Page()
page.feed(text)
page.close()
small = [size for size in re.findall(r"([0-9.]+)px system-ui", text) if float(size) < 12]
outside = re.findall(r"https?:|url\(|@import|script", text)
drawings = int(sys.argv[2])
found = page.open, small, outside, page.seen.count("svg"), page.named, page.seen.count("tr") > 3
if found != ([], [], [], drawings, drawings, True):
    sys.exit("open, small, from elsewhere, drawings, named ones, table: %s" % (found,))
print(page.text)
]=],
        path,
        tostring(drawings)
    )
end

-- The first of the programs of that name that this machine lacks, or nil.
function program.missing(...)
    for _, name in ipairs { ... } do
        local found = assert(process.run({ "sh", "-c", 'command -v "$1"', "sh", name }, { timeout = 60 }))
        if found.status ~= 0 then return name end
    end
end

-- Whether the compiler `cc` makes programs with `flag`.
function program.links(cc, flag)
    local result = process.run {
        "bash",
        "-c",
        'echo "int main(void) { return 0; }" | "$0" "$1" -x c - -o "$2"',
        cc,
        flag,
        process.temporary_directory() .. "/linked",
    }
    return result and result.status == 0
end

-- Those words and more.
function program.with(words, ...)
    return table.move({ ... }, 1, select("#", ...), #words + 1, { table.unpack(words) })
end

-- Writes `text` as the model file `folder`/`name`.lua and returns its path.
function program.model(folder, name, text)
    local path = folder .. "/" .. name .. ".lua"
    assert(host.write_file(path, text))
    return path
end

return program
