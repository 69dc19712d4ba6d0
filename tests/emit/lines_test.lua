-- No line of an emitted file is longer than 140 columns, over a few models, types and profiles.
local host = require "host"
local json = require "json"
local program = require "tests.support.program"

local columns = 140
local test = {}

local function model(name) return "gen/models/" .. name .. ".lua" end

-- Adds the test of the bundle that these words emit.
local function add(name, words)
    test["lines_of_" .. name] = function()
        local folder, long = program.folder(), {}
        words[#words + 1], words[#words + 2] = "-o", folder
        program.works(words)
        for _, file in ipairs(json.decode(assert(host.read(folder .. "/MANIFEST.json"))).files) do
            local number, text = 0, file.name:find "%.[ch]$" and host.read(folder .. "/" .. file.name) or ""
            for line in text:gmatch "([^\n]*)\n" do
                number = number + 1
                local length = utf8.len(line)
                if length > columns then
                    long[#long + 1] = string.format("%s:%d: %d: %s", file.name, number, length, line:sub(1, 100))
                end
            end
        end
        if #long > 0 then
            error(
                #long
                    .. " lines of more than "
                    .. columns
                    .. " columns\n"
                    .. table.concat(long, "\n", 1, math.min(#long, 5)),
                0
            )
        end
    end
end

for _, name in ipairs { "tiny", "roberta_small", "roberta_base" } do
    for _, tables in ipairs { "f32", "bf16", "i8", "e4m3" } do
        add(name .. "_" .. tables, { "emit", model(name), "--tables", tables })
    end
    add(name .. "_projection_bf16", { "emit", model(name), "--projection", "bf16" })
end
for _, name in ipairs { "tiny_skipless", "lookup_skipless", "mistral_7b_skipless" } do
    add(name, { "emit", model(name) })
    add(name .. "_i8", { "emit", model(name), "--type", "i8", "--cache", "i8" })
end
add("kws_integer", { "emit", model "kws", "--arithmetic", "integer", "--isa", "scalar" })

-- Firmware for this machine, whose compiler is there.
for _, arithmetic in ipairs { "float", "integer" } do
    local weights = program.folder() .. "/kws.safetensors"
    program.works { "sample", model "kws", "-o", weights }
    local words = { "emit", model "kws", "--profile", "firmware", "--target", "generic", "--without-misra" }
    for _, word in ipairs { "--arithmetic", arithmetic, "--weights", weights } do
        words[#words + 1] = word
    end
    add("kws_firmware_" .. arithmetic, words)
end

return test
