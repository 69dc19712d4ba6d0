-- Calls of an emitted whole model, alone in this process, or each between guard pages in a process of its own.
--
-- job = { library, blob, bind, encode, encode_batch, start, prefill, prefill_all, step, position (names of functions),
-- what harness/calls/tokenizer.lua wants, if there is a tokenizer, causal, pooled, d_out, vocab, context,
-- weights_struct_bytes, state_bytes, halves (spans of clamped.lua), scratch_bytes, step_scratch_bytes, flush_denormals
-- (a function's name; nil: calls in this process leave denormal numbers as they are) }. Rows are strings of float32,
-- ids lists of integers.
--
--   whole_model.open(job) -> one | nil, message
--     one:encode_batch { ids, … } -> rows | nil, message: one row a sequence, or one a token
--     one:state() -> an empty state of a decoder
--       state:prefill(ids), state:prefill_all(ids), state:step(id) -> rows | nil, message; state:position() -> tokens;
--       state:clamped() -> how many numbers of its cache half precision does not hold (harness/calls/clamped.lua)
--     one:ids(text) -> ids | nil, message; one:text_of(id) -> text | nil
--   whole_model.run(job, calls) -> { rows, … }, seen, clamped (of the last state) | nil, message: calls = { { what
--   = the name of a function, sequences = { ids, … } }, … }. Every call is made with wrong ids and with too many, too,
--   which it must refuse.
--   seen: what lookup FFNs were given and looked up, if the job asks for it (harness/verify/interposed.h).
local clamped = require "harness.calls.clamped"
local compiled = require "compiled"
local guarded = require "harness.base.guarded"
local interposed = require "interposed"
local isolated = require "harness.base.isolated"
local tokenizer = require "harness.calls.tokenizer"

local whole_model = {}

local position_refused, id_refused = 9, 10 -- codes
local wrong_ids = { -1, false, -1 << 31, (1 << 31) - 1 } -- false: the first behind those that there are

-- The arguments of each function, in their order.
whole_model.arguments = {
    encode = function(a) return a.weights, a.ids, a.count, a.y, a.scratch end,
    encode_batch = function(a) return a.weights, a.ids, a.offsets, a.sequences, a.y, a.scratch end,
    start = function(a) return a.state end,
    prefill = function(a) return a.weights, a.state, a.ids, a.count, a.y, a.scratch end,
    prefill_all = function(a) return a.weights, a.state, a.ids, a.count, a.y, a.scratch end,
    step = function(a) return a.weights, a.state, a.id, a.y, a.scratch end,
}
local arguments = whole_model.arguments

-- The arguments of call `what` for sequences, none: of start, but for memory: { list, ids, id, count, offsets,
-- sequences, bytes (of its rows) }.
function whole_model.given(job, what, sequences)
    local list, offsets = {}, { 0 }
    for i, ids in ipairs(sequences or {}) do
        table.move(ids, 1, #ids, #list + 1, list)
        offsets[i + 1] = #list
    end
    local rows = (what == "step" or what == "prefill") and math.min(1, #list)
        or job.pooled and #offsets - 1
        or #list
    return {
        list = list,
        ids = compiled.pack(list),
        id = list[1],
        count = #list,
        offsets = ("j"):rep(#offsets):pack(table.unpack(offsets)),
        sequences = #offsets - 1,
        bytes = 4 * rows * job.d_out,
    }
end
local given = whole_model.given

-- The rows of each of the calls in `rows`, those of all of them, "" of those that have none.
function whole_model.parted(job, calls, rows)
    local list, at = {}, 1
    for i, call in ipairs(calls) do
        local bytes = given(job, call.what, call.sequences).bytes
        list[i], at = rows:sub(at, at + bytes - 1), at + bytes
    end
    return list
end

local one, state = {}, {}
one.__index, state.__index = one, state

function whole_model.open(job)
    local own, message = compiled.open(job)
    if not own then return nil, message end
    return setmetatable({ own = own, job = job, scratch = compiled.memory(job.scratch_bytes) }, one)
end

local function rows_of(self, what, sequences, memory)
    local own, job, a = self.own, self.job, given(self.job, what, sequences)
    local y <close> = compiled.memory(a.bytes)
    a.weights, a.y, a.scratch, a.state = own, y, self.scratch, memory
    local before = job.flush_denormals and select(2, own:call(job.flush_denormals, 1))
    local _, status = own:call(job[what], arguments[what](a))
    if before then own:call(job.flush_denormals, before) end
    if status == 0 then return y:read() end
    if status == position_refused and job.pooled and a.count == 0 then
        return nil, "a text without ids has no vector"
    elseif status == position_refused then
        return nil, string.format("a sequence is longer than the %d tokens of the model's context", job.context)
    elseif status == id_refused then
        return nil, string.format("an id is not below vocab = %d", job.vocab)
    end
    return nil, string.format("%s returned %d", what, status)
end

function one:encode_batch(sequences) return rows_of(self, "encode_batch", sequences) end

function one:state()
    local memory = compiled.memory(self.job.state_bytes)
    self.own:call(self.job.start, memory)
    return setmetatable({ of = self, memory = memory }, state)
end

function one:ids(from) return tokenizer.ids(self.own, self.job, from) end

function one:text_of(id) return tokenizer.text_of(self.own, self.job, id) end

function state:prefill(ids) return rows_of(self.of, "prefill", { ids }, self.memory) end

function state:prefill_all(ids) return rows_of(self.of, "prefill_all", { ids }, self.memory) end

function state:step(id) return rows_of(self.of, "step", { { id } }, self.memory) end

function state:clamped() return clamped.count(self.of.job.halves, self.memory) end

function state:position()
    local tokens = self.of.own:call(self.of.job.position, self.memory)
    return tokens
end

-- A call between guard pages: the code that the function returns, whether it wrote beyond its memory, and rows.
-- `words`: for guarded.lua, behind its name.
local function called(own, job, what, a, words)
    return guarded(own, job[what] .. (words or ""), arguments[what](a))
end

local function ids_of(list) return { text = compiled.pack(list), alignment = 4 } end

-- Whether the call refuses ids that are none, and more tokens than the context holds, and leaves all as it is. One that
-- goes on instead reads and writes behind the memory of `a`, so that it may crash.
local function refuses(own, job, what, a)
    local before = a.state and a.state.memory:read()
    local function refused(wanted, changes)
        local words = ", which does not refuse " .. (wanted == id_refused and "a wrong id" or "too many tokens")
        local status, fault, y = called(own, job, what, setmetatable(changes, { __index = a }), words)
        return status == wanted and not fault and y == ("\xff"):rep(#y) and (not before or a.state.memory:holds(before))
    end
    for i, wrong in ipairs(wrong_ids) do
        local ids = table.move(a.list, 1, a.count, 1, {})
        ids[i % 2 == 0 and a.count or 1] = wrong or job.vocab
        if not refused(id_refused, { ids = ids_of(ids), id = ids[1] }) then return false end
    end
    local many = job.context + 1
    local function offsets(...)
        local count = select("#", ...)
        return { offsets = ("j"):rep(count):pack(...), sequences = count - 1 }
    end
    if what == "encode_batch" then
        return refused(position_refused, offsets(0, many)) and refused(position_refused, offsets(0, 2, 1))
    elseif what == "encode" then
        return refused(position_refused, { count = many })
            and (not job.pooled or refused(position_refused, { count = 0 }))
    end
    what = what == "step" and "prefill" or what
    return refused(position_refused, { count = many - own:call(job.position, a.state.memory) })
end

-- Calls of a kind that must refuse wrong ids, the first: each takes five passes over the state.
local refusing = 8

-- Makes the calls, each with memory of exactly its size, and returns their rows together.
local function run_calls(job, calls)
    local function fail(...) error(job.library .. ": " .. string.format(...), 0) end
    interposed.watch(job.seen)
    local own = assert(compiled.open(job))
    interposed.watch_behind(own)
    local function kept(bytes) return { name = "kept", memory = compiled.memory(bytes, "end") } end
    local memory, scratch = job.causal and kept(job.state_bytes), kept(job.scratch_bytes)
    local step_scratch = job.causal and kept(job.step_scratch_bytes)
    local parts, of_kind = {}, {}
    for i, call in ipairs(calls) do
        local what, status, fault = call.what
        of_kind[what] = (of_kind[what] or 0) + 1
        if what == "start" then
            status, fault = 0, select(2, guarded(own, job.start, memory))
            parts[i] = ""
        else
            local a = given(job, what, call.sequences)
            a.weights = own
            a.ids, a.offsets, a.state = ids_of(a.list), { text = a.offsets, alignment = 8 }, memory
            a.y = { bytes = a.bytes, place = i % 2 == 0 and "unaligned" or "end", alignment = 4, result = true }
            a.scratch = what == "step" and step_scratch or scratch
            if a.count > 0 and of_kind[what] <= refusing and not refuses(own, job, what, a) then
                fail("%s does not refuse a wrong id or too many tokens", what)
            end
            status, fault, parts[i] = called(own, job, what, a)
        end
        if status ~= 0 then fail("%s returned %d", what, status) end
        if fault then fail("%s wrote beyond its memory", what) end
    end
    return table.concat(parts), interposed.notes(), clamped.count(job.halves, job.causal and memory.memory)
end

function whole_model.run(job, calls)
    local rows, seen, beyond = isolated(job.library, function() return run_calls(job, calls) end)
    if not rows then return nil, seen end
    return whole_model.parted(job, calls, rows), seen, beyond
end

return whole_model
