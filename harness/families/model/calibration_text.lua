-- The sequences of a text, or of ids, that a whole model is calibrated for.
local ids_file = require "harness.families.model.ids"
local text_file = require "harness.base.text_file"
local text_model = require "harness.families.model.text_model"

local most_tokens = 8192 -- spread over the text
local longest = 512 -- tokens of a decoder's window
local most_text_bytes = 1 << 28

-- Windows of `ids`, one behind the other.
local function windows_of(ids, length)
    local list = {}
    for first = 1, #ids, length do
        list[#list + 1] = table.move(ids, first, math.min(first + length - 1, #ids), 1, {})
    end
    return list
end

-- The lines of an encoder's text as ids.
local function lines_of(model, p, text, path)
    local list, number = {}, 0
    for line in text:gmatch "[^\n]*" do
        number = number + 1
        if line:find "%S" then
            list[#list + 1] = text_model.truncated(p, text_model.ids(model, p, line, path .. ":" .. number))
        end
    end
    return list
end

-- Those of `list` that are in equal distances, with at most `most_tokens` ids or a sequence.
local function spread(list)
    local total, taken, share = 0, {}, 0.0
    for _, ids in ipairs(list) do
        total = total + #ids
    end
    for _, ids in ipairs(list) do
        share = share + math.min(1, most_tokens / math.max(total, 1))
        if share >= 1 - 1e-9 then
            taken[#taken + 1], share = ids, share - 1
        end
    end
    return #taken > 0 and taken or list
end

-- The sequences of ids that --calibrate or --calibrate-ids names, for plan `p` of the model file `path`. model: the
-- compiled one, for its tokenizer. Raises one line.
return function(path, p, model, options)
    local file = options.calibrate or options["calibrate-ids"]
    local length = math.min(p.context, longest)
    local list
    if options["calibrate-ids"] then
        list = windows_of(ids_file.read(file, p.model.vocab), length)
    else
        if not p.facts then
            error(path .. ": tokenizer: is missing: --calibrate takes text; --calibrate-ids takes ids", 0)
        end
        local text = text_file.read("--calibrate", file, most_text_bytes)
        list = p.causal and windows_of(text_model.ids(model, p, text, file, true), length)
            or lines_of(model, p, text, file)
    end
    if #list == 0 then error(file .. ": has no tokens", 0) end
    return spread(list)
end
