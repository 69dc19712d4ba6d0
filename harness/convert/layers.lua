-- Which FFNs of a model are converted: those of --layers, or as many as may be without losing too much.
local activations = require "harness.convert.activations"
local copied = require "gen.schema.copied"
local host = require "host"
local misuse = require "gen.schema.misuse"
local model_text = require "gen.import.model_text"
local rules = require "gen.families.model.model"

local layers = {}

-- The numbers (from 0) that the text `list` names, such as "0,2-5"; raises one line for others.
local function parsed(list)
    local set = {}
    for part in (list .. ","):gmatch "([^,]*)," do
        local first, last = part:match "^(%d+)%-?(%d*)$"
        if not first or part:sub(-1) == "-" then
            misuse(string.format('--layers: "%s": must be auto, or numbers and ranges such as 0,2-5', list))
        end
        first, last = math.tointeger(first), math.tointeger(last ~= "" and last or first)
        if not first or not last or last < first or last >= 4096 then
            misuse(string.format('--layers: "%s": %s is no range of layers', list, part))
        end
        for number = first, last do
            set[number] = true
        end
    end
    return set
end

-- Of `numbers`, those of blocks that can be converted, the ones that `list` names; nil: all.
function layers.chosen(list, numbers, path)
    if not list then return numbers end
    local set, chosen, possible = parsed(list), {}, {}
    for _, i in ipairs(numbers) do
        possible[i - 1] = true
        if set[i - 1] then chosen[#chosen + 1] = i end
    end
    for number in pairs(set) do
        if not possible[number] then
            misuse(
                string.format("--layers: %d: layer %d of %s has no lookup FFN to convert", number, number, path)
            )
        end
    end
    return chosen
end

-- The blocks of a model that has the lookup FFNs of `ours` in the blocks `numbers`, and else the FFNs of `theirs`.
function layers.mixed(ours, theirs, numbers)
    local blocks, set = {}, {}
    for _, i in ipairs(numbers) do
        set[i] = true
    end
    for i, block in ipairs(ours) do
        blocks[i] = (set[i] or theirs[i].ffn.kind == "lookup") and block
            or setmetatable({ ffn = theirs[i].ffn }, { __index = block })
    end
    return blocks
end

-- The most of `list`, which is sorted by what they cost, that lose at most `most` together: loss_of(some of them) says
-- how much. Halves the range: more of them are taken to lose more.
function layers.most(list, most, loss_of)
    local low, high = 0, #list
    while low < high do
        local middle = (low + high + 1) // 2
        if loss_of(table.move(list, 1, middle, 1, {})) <= most then
            low = middle
        else
            high = middle - 1
        end
    end
    return table.move(list, 1, low, 1, {})
end

-- Where the model file of the weights in the file `output` goes.
function layers.path(output) return (output:gsub("%.safetensors$", "")) .. ".lua" end

-- Writes the model file of `m`, whose tokenizer's file was named from the folder of `path`.
function layers.write(m, path, output)
    local own = copied(m)
    local function folder(name) return name:match "^(.*/)[^/]*$" or "" end
    if m.tokenizer and folder(path) ~= folder(output) then
        own.tokenizer = {}
        for key, value in pairs(m.tokenizer) do
            local is_path = (key == "file" or key == "merges") and not value:find "^/"
            own.tokenizer[key] = is_path and assert(host.absolute(folder(path) .. value)) or value
        end
    end
    local text = model_text.of("Some FFNs of " .. path .. ", by lookupc convert", rules.whole.keys, own)
    assert(host.write_file(output, text))
end

-- The model of `target` with those blocks, from the file `path`.
function layers.model(target, blocks, path)
    return activations.with_blocks(target, blocks, { name = target.name }, path)
end

return layers
