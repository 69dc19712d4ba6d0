-- A compiled variant of a LookupFFN whose functions are called between guard pages, in this process.
--
--   variant.open(v, facts) -> c: v as compile.describe says it, facts of the module `lookup_reference`; raises one line
-- Its fields = { v, facts, slots (of a token), calls (until now), fault (the first write outside the buffers) }, and
--   c:bind(quick) -> the code that bind returns, whether it wrote into its struct only. The blob is a copy that ends at
--   a guard page, or the reference's own.
--   c:ffn(name, x, place, zeros) -> y; scratch is full of 0xFF, or of zeros
--   c:ffn_in_place(name, x) -> y
--   c:project(x, place) -> codes, scores of at most a chunk of tokens; scores are 1 where kernels write none
--   c:gather(codes, scores, place) -> y, likewise. Scores are NaN where there is no token, and where kernels read none;
--   codes there: row 0.
-- Rows of x and y are strings of float32, codes and scores as in `lookup_reference`; place: of buffers,
-- "end" if absent.
local compiled = require "compiled"
local guarded = require "harness.base.guarded"
local lookup_reference = require "lookup_reference"
local process = require "process"

local variant = { places = { "end", "start", "unaligned" } }
variant.__index = variant

local words = {
    ["end"] = "buffers end at a guard page",
    start = "buffers start at a guard page",
    unaligned = "x and y aligned to 4 bytes",
}

function variant.open(v, facts)
    local own = assert(compiled.open { library = v.library, stays = true })
    return setmetatable({ v = v, own = own, facts = facts, slots = v.h * v.neighbours, calls = 0 }, variant)
end

function variant:bind(quick)
    local v, blob, bytes = self.v, self.facts.blob, self.facts.blob_bytes
    if not quick then
        self.blob = compiled.memory(bytes, "end")
        self.blob:copy(blob)
        self.blob:read_only()
    end
    self.weights = compiled.memory(v.weights_struct_bytes, "end")
    process.stage(v.bind)
    local _, code = self.own:call(v.bind, self.blob or blob, bytes, self.weights)
    local intact = self.weights:intact()
    self.weights:read_only()
    return code, intact
end

-- Calls function `name` and returns the results of its buffers.
local function call(self, name, how, tokens, ...)
    local what = string.format("%s, %d tokens, %s", name, tokens, how)
    self.calls = self.calls + 1
    local function results(_, fault, ...)
        if fault and not self.fault then self.fault = string.format("bytes around %s written by %s", fault, what) end
        return ...
    end
    return results(guarded(self.own, what, self.weights, ...))
end

-- x or y, aligned for a float.
local function floats(name, place, text, bytes)
    return { name = name, text = text, bytes = bytes, place = place, alignment = 4, result = bytes ~= nil }
end

-- Codes, scores or scratch, which are always aligned.
local function aligned(name, place, text, bytes)
    place = place == "unaligned" and "end" or place
    return { name = name, text = text, bytes = bytes, place = place, result = bytes ~= nil and name ~= "scratch" }
end

local function scratch_of(self, place) return aligned("scratch", place, nil, self.v.scratch_bytes) end

function variant:ffn(name, x, place, zeros)
    local v = self.v
    local tokens, scratch = #x // (4 * v.d), scratch_of(self, place)
    if tokens == 1 and name ~= v.ffn then scratch.bytes = v.scratch_bytes_one end
    if zeros then
        scratch.text, scratch.written = ("\0"):rep(scratch.bytes), true
    end
    local y = floats("y", place, nil, 4 * tokens * v.d_out)
    return call(self, name, words[place or "end"], tokens, floats("x", place, x), y, tokens, scratch)
end

function variant:ffn_in_place(name, x)
    local y, tokens = floats("y", "end", x, #x), #x // (4 * self.v.d)
    y.written = true
    return call(self, name, "in place", tokens, y, y, tokens, scratch_of(self, "end"))
end

function variant:project(x, place)
    local v, slots = self.v, self.slots
    local tokens = #x // (4 * v.d)
    local all = (tokens + v.tile - 1) // v.tile * v.tile * slots
    local code, score = aligned("code", place, nil, 2 * all), aligned("score", place, nil, 4 * all)
    local from, scratch = floats("x", place, x), scratch_of(self, place)
    local codes, scores =
        call(self, v.project, words[place or "end"], tokens, from, tokens, code, score, scratch)
    codes = lookup_reference.rows(codes, 2, slots, v.tile, tokens)
    if not self.facts.weighted then return codes, ("f"):pack(1):rep(tokens * slots) end
    return codes, lookup_reference.rows(scores, 4, slots, v.tile, tokens)
end

function variant:gather(codes, scores, place)
    local v, slots = self.v, self.slots
    local tokens = #codes // (2 * slots)
    if not self.facts.weighted then scores = ("\xff"):rep(#scores) end
    local code = aligned("code", place, lookup_reference.tiles(codes, 2, slots, v.tile, 0))
    local score = aligned("score", place, lookup_reference.tiles(scores, 4, slots, v.tile, 0xff))
    local y = floats("y", place, nil, 4 * tokens * v.d_out)
    return call(self, v.gather, words[place or "end"], tokens, code, score, y, tokens, scratch_of(self, place))
end

return variant
