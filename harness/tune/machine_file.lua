-- The file of a CPU in gen/machines/, read and written; the same numbers are the same bytes.
local host = require "host"
local isa = require "gen.isa.list"
local lua_text = require "gen.schema.lua_text"
local machines = require "gen.machines.list"
local one_of = require "gen.schema.one_of"
local process = require "process"
local sandbox = require "sandbox"
local schema = require "gen.schema.schema"

local machine_file = {}

local largest_machine = 1 << 16

local number = {
    words = "must be an integer from 0, or math.huge",
    holds = function(v) return v == math.huge or math.type(v) == "integer" and v >= 0 end,
}

-- A list of what holds.
local function list_of(words, holds)
    local function all_hold(list)
        for _, item in ipairs(type(list) == "table" and list or { false }) do
            if not holds(item) then return false end
        end
        return true
    end
    return { words = "must be a list of " .. words, holds = all_hold }
end

local rules = {
    cpus = list_of("{ vendor, family, first model, last model }", function(range)
        local kinds = {}
        for i = 1, 4 do
            kinds[i] = type(range) == "table" and (math.type(range[i]) or type(range[i])) or "none"
        end
        return table.concat(kinds, " ") == "string integer integer integer"
    end),
    architecture = schema.choice("x86", "aarch64"),
    isa = list_of("instruction sets", function(name) return one_of.contains(isa.names, name) end),
}

local keys = {}
for _, group in ipairs(machines.fields) do
    for _, field in ipairs(group) do
        local optional = machines.get(machines.nominal)[field] == nil
        keys[#keys + 1] = { key = field, rule = rules[field] or number, optional = optional }
    end
end

-- The CPU of the file `path`, and the comment on top of it; raises one line.
function machine_file.load(path)
    local text, copy = assert(host.read(path, largest_machine)), process.temporary_directory() .. "/cpu.lua"
    assert(host.write_file(copy, (text:gsub("math%.huge", "1e999")))) -- the sandbox has no math
    local given, message = sandbox.load(copy)
    if not given then error(path .. message:sub(#copy + 1), 0) end
    return schema.validate({ path = path, source = text }, keys, given, {}), text:match "^%-%- ([^\n]*)" or ""
end

-- A value of a field as it is written: sizes from 64 KiB on are shifted.
function machine_file.value(value)
    if math.type(value) ~= "integer" or value < 1 << 16 or value % 1024 ~= 0 then return lua_text.value(value) end
    local shift = value % (1 << 20) == 0 and 20 or 10
    return string.format("%d << %d", value >> shift, shift)
end

-- The text of the file of `cpu` with a comment on top.
function machine_file.text(cpu, comment)
    local lines = { "-- " .. comment, "return {" }
    for i, group in ipairs(machines.fields) do
        if i > 1 then lines[#lines + 1] = "" end
        for _, field in ipairs(group) do
            local value = cpu[field]
            if value ~= nil then lines[#lines + 1] = "    " .. field .. " = " .. machine_file.value(value) .. "," end
        end
    end
    lines[#lines + 1] = "}\n"
    return table.concat(lines, "\n")
end

return machine_file
