-- Tensors of a checkpoint that a model does not use: they are refused, since without them it would compute something
-- else.
local unused_tensors = {}

local most_named = 8
local most_reasons = 3
local longest_name = 200

-- What quantised weights in formats that are not read have beside them: an end of its name, what stands there in the
-- name of the weights, and what these are.
local gptq, bitsandbytes = "weights quantised by GPTQ or AWQ", "weights quantised by bitsandbytes"
local parts = {
    { "_zero_point", "", "weights with zero points" },
    { ".biases", ".weight", "weights quantised by MLX" },
    { ".scales", ".weight", "weights quantised in groups" },
    { ".qweight", ".weight", gptq },
    { ".qzeros", ".weight", gptq },
    { ".g_idx", ".weight", gptq },
    { ".weight_packed", ".weight", "packed weights of compressed-tensors" },
    { ".weight.absmax", ".weight", bitsandbytes },
    { ".SCB", ".weight", bitsandbytes },
}

-- Raises one line for the first of `names`, tensors that a model leaves out of the checkpoint `path`, without which a
-- tensor that it reads, a key of `read`, has other values.
function unused_tensors.refuse_parts(path, names, read)
    table.sort(names)
    for _, name in ipairs(names) do
        for _, row in ipairs(parts) do
            local stem = name:sub(-#row[1]) == row[1] and name:sub(1, -#row[1] - 1)
            if stem and read[stem .. row[2]] then
                local rule = "%s: tensor %s: %s are not read; take the checkpoint that they were made from"
                error(rule:format(path, name:sub(1, longest_name), row[3]), 0)
            end
        end
    end
end

-- Raises one line for the tensors `names` of the checkpoint `path`, if there are any. reason(m, name): why model `m`
-- leaves that tensor out, or what would help; nil: nobody knows.
function unused_tensors.refuse(path, m, names, reason)
    if not names[1] then return end
    local shown, reasons, known = {}, {}, {}
    for i, name in ipairs(names) do
        if i <= most_named then shown[i] = name:sub(1, longest_name) end
        local text = reason(m, name)
        if text and not known[text] and #reasons < most_reasons then
            reasons[#reasons + 1], known[text] = text, true
        end
    end
    local more = #names > most_named and string.format(" and %d more", #names - most_named) or ""
    error(
        string.format(
            "%s: tensor%s %s%s: %s no part of model %s%s; --ignore PATTERNS leaves %s out",
            path,
            names[2] and "s" or "",
            table.concat(shown, ", "),
            more,
            names[2] and "are" or "is",
            m.name,
            reasons[1] and ": " .. table.concat(reasons, "; ") or "",
            names[2] and "them" or "it"
        ),
        0
    )
end

return unused_tensors
