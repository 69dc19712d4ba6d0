-- Modules run in lookupc's own Lua state (gen/host/program.c), which has no io, os or debug.
std = {
    read_globals = {
        "_ENV", "_G", "_VERSION", "assert", "collectgarbage", "coroutine", "error", "getmetatable", "ipairs", "load",
        "math", "next", "package", "pairs", "pcall", "rawequal", "rawget", "rawlen", "rawset", "require", "select",
        "setmetatable", "string", "table", "tonumber", "tostring", "type", "utf8", "xpcall",
    },
}
files["tests/firmware/two_rows.lua"].read_globals = { "include" } -- a model file
files["gen/host/embed.lua"].std = "lua54"
files["tests/effort.lua"].std = "lua54"
files["tests/support/isa.lua"].std = "lua54"
max_line_length = 120
ignore = {
    "431", -- a local shadows an upvalue
    "581", -- not (x <= y) is not x > y: either may be NaN
}
