-- What a measurement depends on, its key: this machine, the compiler, the generator and the model; and how near two
-- keys are.
local emit = require "gen.emit.emit"
local host = require "host"
local json = require "json"
local machine = require "harness.base.machine"

local key = {}

local function is_text(value) return type(value) == "string" and value ~= "" and not value:find("%c") end
local function is_natural(value) return math.type(value) == "integer" and value >= 0 end

-- What a field may hold: whether a value does, and the rule in words.
key.kinds = {
    text = { is_text, "must be a text without control characters" },
    natural = { is_natural, "must be an integer from 0" },
    count = { function(value) return is_natural(value) and value > 0 end, "must be an integer from 1" },
    flag = { function(value) return type(value) == "boolean" end, "must be true or false" },
    digest = {
        function(value) return type(value) == "string" and #value == 64 and not value:find("[^0-9a-f]") end,
        "must be 64 hexadecimal digits",
    },
}

-- all others are natural
local kind_of = { virtual = "flag", arch = "text", isa_usable = "text", cpu_vendor = "text", cpu_name = "text" }

key.levels = machine.levels

-- One row a field, as those of harness/base/machine.lua and with a kind. What is measured and with what comes first,
-- the CPU last.
key.fields = {
    { name = "templates", kind = "digest" },
    { name = "model", kind = "digest" },
    { name = "tables", kind = "text" },
    { name = "projection", kind = "text" },
    { name = "isa", kind = "text" },
    { name = "threads", kind = "count" },
    { name = "flags", kind = "text" },
    { name = "compiler", kind = "text", differs = 2, part = function(value) return value:match("^%S+") end },
    { name = "generator", kind = "text", differs = 2 },
}
for _, field in ipairs(machine.fields) do
    key.fields[#key.fields + 1] =
        { name = field.name, kind = kind_of[field.name] or "natural", differs = field.differs }
end

-- The key's name: the SHA-256 of its sorted JSON.
function key.id(k) return host.sha256(assert(json.encode(k, "compact"))) end

-- The compiler of the first line of its --version: "gcc" or "clang" and the rest, whatever the program was called.
function key.compiler(version)
    if version:find("clang", 1, true) then return "clang " .. version end
    local program, rest = version:match("^(%S+)(%s.*)$")
    local name = program and ("-" .. program:gsub("%-[%d.]+$", ""))
    return name and name:find("%-g?cc$") and "gcc" .. rest or version
end

-- The key of a measurement on this machine. `what`: { compiler = first line of --version, flags, model = the plan's
-- digest, tables, projection, isa, threads }.
function key.here(what)
    local k = machine.cpu()
    k.generator, k.templates = host.version, emit.digest()
    k.compiler = key.compiler(what.compiler)
    for _, name in ipairs { "flags", "model", "tables", "projection", "isa", "threads" } do
        k[name] = what[name]
    end
    return k
end

-- A name for this machine that tells nothing of it.
function key.host_id()
    local id, name = host.read("/etc/machine-id", 4096) or "", host.read("/proc/sys/kernel/hostname", 4096) or ""
    return host.sha256(id .. name):sub(1, 12)
end

local function shown(value)
    local text = tostring(value)
    return text:find("^%x+$") and #text == 64 and text:sub(1, 12) or text
end

-- How near key `other` is to key `wanted`: the number of its level, and the differing fields that this level allows; or
-- nil and the differing fields that none does. Fields as { name, text }.
function key.compare(wanted, other)
    local level, rows = machine.compare(key.fields, wanted, other)
    local fields = {}
    for i, row in ipairs(rows) do
        fields[i] = {
            name = row.name,
            text = string.format("%s differs (%s, not %s)", row.name, shown(other[row.name]), shown(wanted[row.name])),
        }
    end
    return level, fields
end

return key
