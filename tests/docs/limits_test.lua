-- What reads a file that others wrote has a limit with a name, and SECURITY.md lists each with its value.
local check = require "tests.support.check"
local host = require "host"

local test = {}

local limits = assert(assert(host.read "SECURITY.md"):match "\n## Limits\n(.-)\n## ")

function test.limits_are_those_of_the_code()
    for row in limits:gmatch "\n(|[^\n]*)" do
        local limit, name, path = row:match "| ([%d,]+) | `([%w_]+)`, `([%w_./]+)` |$"
        if not name and not row:find "^| what |" and not row:find "^|%-" then error("SECURITY.md: " .. row) end
        if name then
            local value = assert(host.read(path)):match("%f[%w_]" .. name .. " = ([%d<%s]+)")
            check.equal(
                path .. " " .. name .. " " .. load("return " .. value)(),
                path .. " " .. name .. " " .. limit:gsub(",", "")
            )
        end
    end
end

-- What these read is their own or the system's, not what others wrote; only the calls whose first argument begins so.
local own_files = {
    ["commands/doctor.lua"] = { '"/proc/', "path" },
    ["harness/base/cpus.lua"] = { "path", "root" },
    ["harness/base/compile.lua"] = { "library" },
    ["harness/base/precompiled_headers.lua"] = { "from" },
    ["harness/base/library_cache.lua"] = { "path" },
    ["harness/device/board.lua"] = { "blob" },
    ["harness/device/device.lua"] = { "row.blob" },
    ["harness/firmware/build.lua"] = { "files.output" },
    ["harness/firmware/toolchain.lua"] = { "path", "%(path:gsub" },
    ["harness/measure/measure.lua"] = { "output_path", "job.raw" },
    ["harness/measure/process.lua"] = { "arguments" },
    ["harness/train/tokenizer.cc"] = { "path" }, -- texts that harness/base/text_file.lua has read before
    ["harness/train/tokenizer.lua"] = { "path" },
    ["harness/tune/build.lua"] = { "made.fresh", "self:mark" },
    ["harness/tune/key.lua"] = { '"/etc/', '"/proc/' },
    ["harness/web/build.lua"] = { "output", "blob" },
    ["harness/base/text_file.lua"] = { "path" }, -- with the limits of those that call it
}

local function is_own(path, arguments)
    for _, first in ipairs(own_files[path] or {}) do
        if arguments:find("^" .. first) then return true end
    end
    return false
end

-- Every call that reads a file has a limit with a name, and that stands in the table.
function test.limits_are_all_there()
    local calls = 0
    local function look(path, arguments, last)
        calls = calls + 1
        local listed = last and limits:find("`" .. last .. "`, `" .. path .. "`", 1, true)
        local same = last and last:find "^#" -- as large as what it is compared with
        if not (listed or same or is_own(path, arguments)) then
            error(string.format("%s: a file is read (%s) without a limit that SECURITY.md lists", path, arguments))
        end
    end
    for _, folder in ipairs { "gen", "harness", "commands" } do
        for _, file in ipairs(assert(host.files(folder))) do
            local path = folder .. "/" .. file.name
            local source = assert(host.read(path))
            if path:find "%.lua$" then
                for found in source:gmatch "host%.read[%w_]*%s*(%b())" do
                    local arguments = found:sub(2, -2)
                    look(path, arguments, arguments:match ",%s*([#%w_.]+)$")
                end
                local bare = source:find 'host%.read[%w_]* *["=\n]' -- a text without brackets, or another name for it
                if bare and not own_files[path] then error(path .. ": reads a file without a limit") end
            elseif path:find "%.[ch]+$" then
                for found in source:gmatch "files_read[%w_]*%s*(%b())" do
                    local arguments = found:sub(2, -2)
                    local is_declared = arguments:find "^const char"
                    if not is_declared then look(path, arguments, arguments:match "^[^,]*,%s*([%w_]+),") end
                end
            end
        end
    end
    if calls < 40 then error(calls .. " calls were found") end
end

return test
