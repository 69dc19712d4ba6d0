-- What a web page does with a whole model: which page it is, and what its JavaScript calls and has to know.
local print = require "gen.families.model.print"
local validated = require "gen.schema.validated"

local web = {}

local function refuse(p, chain, value, rule) validated.refuse(p.model, chain, value, rule) end

-- Raises one line for a model that no page can show.
local function check(p)
    local output = p.model.output or {}
    if not p.facts then refuse(p, { "tokenizer" }, nil, "is missing: --web needs one that takes text") end
    if p.causal then
        if not output.head then refuse(p, { "output", "head" }, nil, "is missing: --web shows the text of its ids") end
        return
    end
    if not output.pool then refuse(p, { "output", "pool" }, nil, "is missing: --web compares one vector a text") end
    for _, key in ipairs { "head", "classes" } do
        if output[key] then
            refuse(p, { "output", key }, nil, "--web compares vectors of texts, not scores: leave it out")
        end
    end
end

-- The page "search" of an encoder or "generate" of a decoder: { page, exports: C functions that JavaScript calls,
-- error_room: code of too many ids, around: ids that every text gets, last: those of them behind it }.
function web.of(p)
    check(p)
    local names, room = p.names, nil
    for _, status in ipairs(print.api(p).statuses) do
        if status.name == "ERROR_ROOM" then room = status.code end
    end
    local decoder = { names.start, names.prefill, names.step, names.text_of }
    return {
        page = p.causal and "generate" or "search",
        exports = { names.bind, names.tokenize, table.unpack(p.causal and decoder or { names.encode_batch }) },
        error_room = assert(room),
        around = #p.facts.first + #p.facts.last,
        last = #p.facts.last,
    }
end

return web
