-- Prints the names of all instruction sets of x86 and of portable C in gen/isa/list.lua but those for some types only,
-- slowest first; with the path of lookupc behind, of those that this CPU runs, and with a type also those for it:
-- lua5.4 tests/support/isa.lua [LOOKUPC [TYPE]]
local isa = require "gen.isa.list"
local of_x86 = {}
for _, name in ipairs(isa.names) do
    local set = isa.get(name)
    local serves = not set.serves
    for _, type in ipairs(set.serves or {}) do
        serves = serves or type == arg[2]
    end
    if (set.architecture or "x86") == "x86" and serves then of_x86[#of_x86 + 1] = name end
end
local names = table.concat(of_x86, ",")
if not arg[1] then
    print((names:gsub(",", " ")))
    return
end
local command = string.format("'%s' verify gen/models/tiny.lua --isa %s --cflags -O0 --json 2>/dev/null", arg[1], names)
local pipe <close> = assert(io.popen(command))
local found, list = {}, {}
for name in pipe:read("a"):gmatch '"isa": *"([%w_]+)"' do
    if not found[name] then list[#list + 1] = name end
    found[name] = true
end
print(table.concat(list, " "))
