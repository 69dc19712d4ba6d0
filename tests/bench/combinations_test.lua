-- Lists of types that bench is given become the combinations that exist, each once.
local check = require "tests.support.check"
local combinations = require "harness.measure.combinations"

local test = {}

local function blocks(options)
    local list = {}
    for i, one in ipairs(combinations.of_blocks(options)) do
        local words = {}
        for k, key in ipairs { "type", "activations", "cache", "tables", "projection", "named" } do
            words[k] = one[key] or "-"
        end
        list[i] = table.concat(words, " ")
    end
    return list
end

local function refused(fragment, options)
    local good, message = pcall(combinations.of_blocks, options)
    check.equal(good, false)
    check.matches(tostring(message), fragment)
end

function test.all_combinations_of_blocks()
    check.equal(blocks {}, { "f32 - - - - -" })
    check.equal(
        blocks { type = "f32,i8", cache = "f16", projection = "f32,bf16" },
        { "f32 - f16 - f32 -", "f32 - f16 - bf16 -", "i8 - f16 - f32 -", "i8 - f16 - bf16 -" }
    )
end

-- Inputs are rounded to the type of the weights or not at all.
function test.inputs_that_go_with_no_weights_are_left_out()
    check.equal(
        blocks { type = "f32,i8", activations = "f32,i8" },
        { "f32 f32 - - - -", "i8 f32 - - - -", "i8 i8 - - - -" }
    )
    check.equal(
        blocks { type = "f32,i8", activations = "same,i7" },
        { "f32 f32 - - - -", "i8 i8 - - - -", "i8 i7 - - - -" }
    )
    refused('--activations: "bf16": needs %-%-type bf16, not f32', { type = "f32,i8", activations = "i8,bf16" })
end

function test.same_is_the_type_of_the_weights()
    check.equal(
        blocks { type = "f32,i8", activations = "same", projection = "same", tables = "same" },
        { "f32 f32 - f32 f32 -", "i8 i8 - i8 i8 -" }
    )
    check.equal(blocks { type = "f32,bf16", activations = "f32,same" }, {
        "f32 f32 - - - -",
        "bf16 f32 - - - -",
        "bf16 bf16 - - - -",
    })
    refused('--activations: "f16": must be one of f32, bf16, i8', { type = "f16", activations = "same" })
    refused('--type: "same": must be one of', { type = "same" })
end

function test.words_that_are_none()
    refused('--type: "i8": given twice', { type = "i8,f32,i8" })
    refused('--cache: "": must be one of', { cache = "f32," })
    refused('--tuned: "a,": must be files, separated by commas', { tuned = "a," })
end

function test.tuned_files()
    local list = combinations.of_blocks { tuned = "default,a.lua", seed = 7 }
    check.equal({ list[1].tuned, list[1].named, list[2].tuned, list[2].named, list[1].seed, list[2].seed }, {
        false,
        "default",
        "a.lua",
        "a.lua",
        7,
        7,
    })
end

return test
