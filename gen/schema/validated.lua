-- Validated models, and where their keys stand in the model file: for errors that show only once a plan is made.
local schema = require "gen.schema.schema"

local validated = {}

local contexts = setmetatable({}, { __mode = "k" })
local chains = setmetatable({}, { __mode = "k" }) -- of parts: where in the model a key chain of the part stands

-- Notes that model `m` was read from the file and text of `context` (see gen/schema/schema.lua). Returns m.
function validated.note(m, context)
    contexts[m] = context
    return m
end

-- Notes that `part` is a part of model `m`. chain_of(chain): the key chain in m of one in the part; nil: the same.
function validated.note_part(part, m, chain_of)
    local outer = chains[m]
    contexts[part] = contexts[m]
    chains[part] = chain_of and outer and function(chain) return outer(chain_of(chain)) end or chain_of or outer
    return part
end

local function chain_in_file(m, chain) return chains[m] and chains[m](chain) or chain end

-- Raises one line for the key chain of the validated model `m`.
function validated.refuse(m, chain, value, rule) schema.refuse(contexts[m], chain_in_file(m, chain), value, rule) end

-- The same line, where it is only told.
function validated.problem(m, chain, value, rule)
    return schema.problem(contexts[m], chain_in_file(m, chain), value, rule)
end

-- The path of the file that model `m` was read from.
function validated.path(m) return contexts[m].path end

return validated
