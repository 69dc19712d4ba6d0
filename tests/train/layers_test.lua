-- Which layers convert takes: those of a list, the most that lose little, and the blocks of the model that comes of it.
local check = require "tests.support.check"
local layers = require "harness.convert.layers"
local model_file = require "gen.families.model_file"
local program = require "tests.support.program"

local test = {}

local function joined(list) return table.concat(list, " ") end

function test.lists_name_layers_from_zero_on()
    local possible = { 1, 2, 4, 5 } -- numbers of blocks, from 1 on
    check.equal(joined(layers.chosen(nil, possible, "m.lua")), "1 2 4 5")
    check.equal(joined(layers.chosen("3-4,0", possible, "m.lua")), "1 4 5")
    for list, rule in pairs {
        ["2"] = "layer 2 of m.lua has no lookup FFN to convert",
        ["0,,1"] = "must be auto, or numbers and ranges",
        ["1-"] = "must be auto, or numbers and ranges",
        ["3-1"] = "is no range of layers",
        ["99999999999999999999"] = "is no range of layers",
    } do
        local good, message = pcall(layers.chosen, list, possible, "m.lua")
        check.equal(good, false)
        check.equal(tostring(message):find(rule, 1, true) ~= nil, true)
    end
end

function test.the_most_that_lose_little()
    local costs, asked = { 0.1, 0.2, 0.3, 0.4, 0.5 }, 0
    local function loss_of(some)
        asked = asked + 1
        local sum = 0
        for _, i in ipairs(some) do
            sum = sum + costs[i]
        end
        return sum
    end
    for most, wanted in pairs { [0.05] = "", [0.15] = "1", [0.65] = "1 2 3", [9] = "1 2 3 4 5" } do
        asked = 0
        check.equal(joined(layers.most({ 1, 2, 3, 4, 5 }, most, loss_of)), wanted)
        check.equal(asked <= 3, true)
    end
end

function test.other_blocks_stay_dense()
    local ours, theirs = {}, {}
    for i = 1, 3 do
        ours[i] = { d = i, ffn = { kind = "lookup" } }
        theirs[i] = { d = i, ffn = { kind = i == 3 and "lookup" or "mlp" } }
    end
    local kinds, widths = {}, {}
    for i, block in ipairs(layers.mixed(ours, theirs, { 2 })) do
        kinds[i], widths[i] = block.ffn.kind, tostring(block.d)
    end
    check.equal(joined(kinds), "mlp lookup lookup")
    check.equal(joined(widths), "1 2 3")
    check.equal(layers.path "a/b.safetensors", "a/b.lua")
end

function test.a_model_of_both_has_a_file()
    local path = program.folder() .. "/some.lua"
    local made = model_file.load "tests/firmware/lookups.lua"
    layers.write(made, "tests/firmware/lookups.lua", path)
    local read = model_file.load(path)
    for _, key in ipairs { "layers", "output", "tokenizer" } do
        check.equal(read[key], made[key])
    end
end

return test
