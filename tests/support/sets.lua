-- The instruction sets of a bundle by default, from gen/isa/list.lua: as a list, and as --isa takes them.
local isa = require "gen.isa.list"
local list = isa.bundled

return { list = list, bundled = table.concat(list, ",") }
