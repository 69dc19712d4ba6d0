-- The family of tokenizers in the harness; harness/families/list.lua says what its fields mean.
local calls = require "harness.calls.tokenizer"
local compile = require "harness.base.compile"
local compiled = require "compiled"
local host = require "host"
local packing = require "gen.families.packing"
local plan = require "gen.families.tokenizer.plan"
local process = require "process"
local request = require "gen.request.request"

local family = { name = "tokenizer" }

-- Stands for a command that tokenizers do not have.
local function refused(path)
    error(path .. ": is a tokenizer, which has no kernels: lookupc tokenize runs it, lookupc emit and pack take it", 0)
end

family.run, family.verify, family.bench = refused, refused, refused

function family.bench_batches() return "1" end

local tokenizer = {}
tokenizer.__index = tokenizer

function tokenizer:ids(from) return calls.ids(self.model, self.job, from) end
function tokenizer:packed(from) return calls.packed(self.model, self.job, from) end
function tokenizer:text_of(id) return calls.text_of(self.model, self.job, id) end

-- The compiled tokenizer of plan `p`: methods as in harness/calls/tokenizer.lua.
function family.opened(p, options)
    local directory = process.temporary_directory()
    local packed = directory .. "/blob"
    packing.pack(p, { output = packed, prefix = "" })
    local job = {
        library = compile.library({ p }, directory, options.cc, options.cflags),
        blob = packed,
        bind = p.names.bind,
        tokenize = p.names.tokenize,
        text_of = p.names.text_of,
        weights_struct_bytes = p.weights_struct_bytes,
        scratch_factor = p.facts.scratch.factor,
        scratch_more = p.facts.scratch.more,
        around = #p.facts.first + #p.facts.last,
        room_refused = 9,
        scratch_refused = 10,
    }
    return setmetatable({ model = assert(compiled.open(job)), job = job }, tokenizer)
end

-- The texts of the list, one a call, or where it is empty the lines of standard input.
local function each_of(texts)
    local i, reader = 0, #texts == 0 and assert(require("lines").open()) or nil
    return function()
        if reader then
            local line, message = reader:next()
            return line or message and error(message, 0)
        end
        i = i + 1
        return texts[i]
    end
end

-- The command tokenize: prints the ids of `texts`, a row each; without texts, of the lines of standard input.
function family.tokenize(path, texts, options)
    local json = require "json"
    local opened = family.opened(plan.build((request.model(path, options))), options)
    for text in each_of(texts) do
        local ids, message = opened:ids(text)
        if not ids then error(path .. ": " .. message, 0) end
        local line = table.concat(ids, " ")
        if options.json then
            local pieces = {}
            for i, id in ipairs(ids) do
                local piece = opened:text_of(id)
                pieces[i] = utf8.len(piece) and piece or json.null
            end
            line = assert(json.encode({ ids = json.array(ids), pieces = json.array(pieces) }, "compact"))
        end
        if not host.print(line) then break end
    end
    return 0
end

return family
