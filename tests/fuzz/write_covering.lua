-- Writes tests/fuzz/covering.lua again (`./build.sh covering`).
local cover = require "tests.fuzz.cover"
local host = require "host"

return { write = function() assert(host.write_file("tests/fuzz/covering.lua", cover.text(120))) end }
