-- The checks of compiled variants of LookupFFNs against the reference, each variant in a process of its own: what they
-- call may crash or hang.
--
--   checks.all(jobs, at_once) -> { result, ... }, so many variants at the same time; raises one line
--
-- job = { variant = what compile.describe says, with ffn, the regime's own; reference, of `lookup_reference`; counts =
-- numbers of tokens at which any_ffn is compared with ffn; least, most = numbers of tokens at which the public function
-- takes this variant, most 0: at none; patience = seconds for a call; timeout = for all of them, nil: without end; work
-- = multiplications that are worth their time in one call, or in some that repeat it; bind_known = the same bind was
-- tried with damaged blobs before; quick = the codes and outputs of a few tokens only }
--
-- result = { ok, rel_err, max_abs_err and code_flips (against the checkpoint's own weights; flips: not among its best
-- codes), kernel_rel_err (against those weights rounded as the blob has them), codes, codes_within_bound (tables where
-- rounding may take another), tokens, checks = { { name, ok, detail }, ... } }: the numbers of the checks that were
-- reached. A crash adds the check "crashed" with what was being called.
--
-- `c` in the functions below: a variant (variant.lua) with job, tokens, work, random (the sample with its codes), and x
-- and y of these tokens.
local compiled = require "compiled"
local guarded = require "harness.base.guarded"
local lookup_reference = require "lookup_reference"
local process = require "process"
local random_numbers = require("block_reference").random_numbers
local variant = require "harness.verify.variant"

local checks = {}

local work = 1e10 -- by default
local least_tokens = 33
local header_bytes = 64 -- of the blob
local payload_flips = 8 -- bits of the blob's payload that are flipped to see whether the checksum covers them
local thread_calls = 8

-- What a process says: records of a kind ("+" a check that held, "-" one that did not, "j" an integer, "n" a number),
-- a name and a detail.
local record = "s1s1s2"

local function result(name, ok, form, ...)
    process.say(record:pack(ok and "+" or "-", name, form:format(...):sub(1, 0xffff)))
end

local function number(name, value)
    local kind = math.type(value) == "integer" and "j" or "n"
    process.say(record:pack(kind, name, kind:pack(value)))
end

-- How many random tokens of the reference the checks of a variant take.
local function tokens_of(v) return math.max(2 * v.tile + 3, least_tokens) end

-- Tokens `first` to `first + count - 1`, from 0, of rows of `width` floats.
local function slice(rows, width, first, count) return rows:sub(4 * width * first + 1, 4 * width * (first + count)) end

-- The token counts of the batches from `least` to `most`, none twice.
local function batch_sizes(c, least, most)
    local tile, chunk, whole = c.v.tile, c.v.chunk, c.v.whole
    local more = whole > 0 and whole + 1 or 0
    local sizes, known = {}, {}
    local wanted = { least, tile - 1, tile, tile + 1, c.tokens, 9 * tile + 1, chunk, chunk + tile + 1, whole, more }
    for _, size in ipairs(wanted) do
        if size >= least and size <= most and not known[size] then
            sizes[#sizes + 1], known[size] = size, true
        end
    end
    return sizes
end

-- Whether a call with so many tokens is worth the time.
local function affordable(c, tokens) return tokens <= c.tokens or tokens * c.facts.multiplications <= c.work end

-- How many of up to `most` calls with so many tokens are worth the time that one is.
local function affordable_calls(c, tokens, least, most)
    local calls = c.work / (tokens * c.facts.multiplications)
    return calls >= most and most or calls > least and math.floor(calls) or math.min(least, most)
end

-- As many tokens as are worth the time: more than a chunk, more than gather whole rows, more than the tiles of a pass,
-- or what the reference computes.
local function most_tokens(c)
    local pass = 9 * c.v.tile + 1
    for _, tokens in ipairs { c.v.chunk + c.v.tile + 1, math.max(c.v.whole + 1, pass), pass } do
        if affordable(c, tokens) then return tokens end
    end
    return c.tokens
end

-- The sample of the reference with the codes of the kernel for it, a chunk at a time, and the kernel's scores.
local function take_codes(c, reference, tokens, tally)
    local codes, scores, x = {}, {}, reference:x(tokens)
    for first = 0, tokens - 1, c.v.chunk do
        codes[#codes + 1], scores[#scores + 1] = c:project(slice(x, c.v.d, first, c.v.chunk))
    end
    local code, score = table.concat(codes), table.concat(scores)
    local taken = reference:taken(code)
    taken:compare_hash(code, score, tally)
    return taken, score
end

-- Codes and scores for every batch size and place of the buffers.
local function check_project(c)
    local all = lookup_reference.tally()
    local random, right = take_codes(c, c.job.reference:sample("random", c.tokens), c.tokens, all)
    c.random = random
    local codes, within, flips = all.codes, all.within, all.flips
    if all.wrong_codes + all.wrong_scores > 0 then right = nil end
    for _, tokens in ipairs(batch_sizes(c, 1, math.min(most_tokens(c), c.v.chunk))) do
        local x = random:x(tokens)
        for _, place in ipairs(variant.places) do
            local code, score = c:project(x, place)
            random:compare_hash(code, score, all, right)
        end
    end
    if all.wrong_codes > 0 then
        local form = "%d wrong of %d, the first: %s"
        result("codes", false, form, all.wrong_codes, all.codes + all.wrong_codes, all.first_code)
    else
        local form = "%d codes of %d tokens: %d tables where rounding may take another, %d codes differ"
        result("codes", true, form, codes, c.tokens, within, flips)
    end
    if all.wrong_scores > 0 then
        result("scores", false, "%d wrong, the first: %s", all.wrong_scores, all.first_score)
    else
        result("scores", true, "worst relative error %.2g", all.worst_score)
    end
    number("codes", codes)
    number("codes_within_bound", within)
end

local function report(c, name, tally)
    if tally.wrong > 0 then
        local form = "%d of %d tokens wrong, the first: token %d with relative error %.3g"
        result(name, false, form, tally.wrong, tally.compared, tally.first_wrong, tally.first_error)
    elseif tally.moved > c.facts.moved_share * tally.compared + 4.0 then
        local form = "%d of %d tokens off by more than %g of what rounding inputs explains, which is for those half-way"
        result(name, false, form, tally.moved, tally.compared, lookup_reference.same_rounding)
    else
        local form = "%d tokens, worst relative error %.2g, %d over %g but within rounding"
        result(name, true, form, tally.compared, tally.worst, tally.excused, lookup_reference.tolerance)
    end
end

local function check_gather(c)
    local tally = lookup_reference.tally()
    for _, tokens in ipairs(batch_sizes(c, 1, math.min(most_tokens(c), c.v.chunk))) do
        local codes, scores = c.random:looked(tokens)
        for _, place in ipairs(variant.places) do
            c.random:compare(c:gather(codes, scores, place), true, tally)
        end
    end
    report(c, "gather", tally)
end

-- Function `ffn_name` for every batch size from `least` to `most`, its buffers at `place`.
local function check_sizes(c, name, ffn_name, least, most, place)
    local tally = lookup_reference.tally()
    for _, tokens in ipairs(batch_sizes(c, least, most)) do
        c.random:compare(c:ffn(ffn_name, c.random:x(tokens), place), false, tally)
    end
    report(c, name, tally)
    return tally
end

local function check_ffn(c)
    local job, v, most = c.job, c.v, most_tokens(c)
    local few = math.min(most, 9 * v.tile + 1)
    number("kernel_rel_err", check_sizes(c, "ffn", v.ffn, 1, most).worst)
    check_sizes(c, "buffers at the start of a page", v.ffn, 1, few, "start")
    check_sizes(c, "x and y aligned to 4 bytes", v.ffn, 1, few, "unaligned")
    if job.most == 0 then return end
    local last = math.min(job.most, math.max(few, job.least))
    check_sizes(c, "public ffn", v.public_ffn, job.least, last)
end

-- What rounding the weights costs: codes and y against the reference with the checkpoint's own. Nothing is right or
-- wrong here; the model's budget decides. Keeps x and y for the checks that follow.
local function measure_error(c)
    local exact, tally = c.job.reference:sample("exact", c.tokens), lookup_reference.tally()
    c.x = c.random:x(c.tokens)
    c.y = c:ffn(c.v.ffn, c.x)
    exact:compare(c.y, false, tally)
    number("rel_err", tally.worst)
    number("max_abs_err", tally.worst_absolute)
    number("code_flips", c.random:flips(exact))
end

-- 0 tokens: nothing is read, nothing written; x and y are guard pages.
local function check_nothing(c)
    c:ffn(c.v.ffn, "")
    c:ffn(c.v.public_ffn, "")
    c:project("")
    c:gather("", "")
    result("0 tokens", true, "touch nothing")
end

local function check_repeatable(c)
    result("repeatable", c:ffn(c.v.ffn, c.x) == c.y, "%d tokens again, byte for byte", c.tokens)
    local form = "zeros or NaN in scratch give the same bytes"
    result("scratch content", c:ffn(c.v.ffn, c.x, nil, true) == c.y, form)
end

-- A token alone, or in a batch turned round, gives the y that it gives in the batch.
local function check_independent(c)
    local v, tokens, reversed = c.v, c.tokens, {}
    for token = 0, tokens - 1 do
        reversed[tokens - token] = slice(c.x, v.d, token, 1)
    end
    local turned = c:ffn(v.ffn, table.concat(reversed))
    local step = (tokens - 1) // affordable_calls(c, v.tile, 8, tokens) + 1 -- a call costs a tile
    local differ, wrong, first = 0, 0, nil
    for token = 0, tokens - 1 do
        local y, others = slice(c.y, v.d_out, token, 1), { slice(turned, v.d_out, tokens - 1 - token, 1) }
        if token % step == 0 then others[2] = c:ffn(v.ffn, slice(c.x, v.d, token, 1)) end
        for _, other in ipairs(others) do
            local off, length = lookup_reference.distance(other, y)
            if other ~= y then differ = differ + 1 end
            if not (off <= 1e-6 * length) and not c.random:is_near(token) then
                first, wrong = first or token, wrong + 1
            end
        end
    end
    if wrong > 0 then
        local form = "%d differences over 1e-6 from the same token in another batch, the first: token %d"
        result("independent", false, form, wrong, first)
    else
        local form = "%d tokens alone and %d in another order: %d not byte for byte the same"
        result("independent", true, form, (tokens - 1) // step + 1, tokens, differ)
    end
end

local function check_special(c)
    local name, tally = "ties and special inputs", lookup_reference.tally()
    local reference = c.job.reference:sample "special"
    local tokens = lookup_reference.special_tokens
    local special = take_codes(c, reference, tokens, tally)
    special:compare(c:ffn(c.v.ffn, special:x(tokens)), false, tally)
    if tally.wrong_codes > 0 then
        result(name, false, "%d codes wrong, the first: %s", tally.wrong_codes, tally.first_code)
    elseif tally.wrong_scores > 0 then
        result(name, false, "%d scores wrong, the first: %s", tally.wrong_scores, tally.first_score)
    elseif tally.wrong > 0 then
        local which = lookup_reference.special_name(tally.first_wrong)
        result(name, false, "wrong for %s, relative error %.3g", which, tally.first_error)
    else
        result(name, true, "%d codes, %d within rounding differ", tally.codes, tally.flips)
    end
end

-- Puts the float `value` into token `victim`; returns what goes wrong, or nil.
local function poison(c, victim, value)
    local v, wrong, is_nan = c.v, nil, value ~= value
    local at, row = 4 * (victim * v.d + v.d // 2), 4 * v.d_out
    local x = c.x:sub(1, at) .. (is_nan and "\0\0\xc0\x7f" or ("f"):pack(value)) .. c.x:sub(at + 5)
    local first = victim // v.chunk * v.chunk
    local codes = c:project(slice(x, v.d, first, math.min(v.chunk, c.tokens - first)))
    local y = c:ffn(v.ffn, x)
    for slot = (victim - first) * c.slots, (victim - first + 1) * c.slots - 1 do
        local code = ("I2"):unpack(codes, 2 * slot + 1)
        if code >> v.tau ~= 0 then
            wrong = "its code is not below 2^tau"
        elseif is_nan and v.neighbours == 1 and code ~= 0 then
            wrong = "a NaN gives a bit"
        end
    end
    for o = victim * row + 1, is_nan and c.facts.scored and (victim + 1) * row or 0, 4 do
        local value_of_y = ("f"):unpack(y, o)
        if value_of_y == value_of_y then wrong = "y of a token with a NaN is not all NaN" end
    end
    local function others(of) return of:sub(1, victim * row) .. of:sub((victim + 1) * row + 1) end
    if others(y) ~= others(c.y) then return "another token's y changes" end
    return wrong
end

local function check_not_finite(c)
    local poisons = {
        { "NaN", 0 / 0 },
        { "+Inf", math.huge },
        { "-Inf", -math.huge },
        { "the largest float", 0x1.fffffep+127 },
    }
    for _, row in ipairs(poisons) do
        local wrong = poison(c, c.v.tile // 2, row[2]) or poison(c, c.tokens - 1, row[2])
        result(row[1], not wrong, "%s", wrong or "stays in its token")
    end
end

local function in_place_allowed(c) return c.v.d == c.v.d_out end

local function check_in_place(c)
    if not in_place_allowed(c) then return end
    result("in place", c:ffn_in_place(c.v.ffn, c.x) == c.y, "y = x gives the same bytes")
end

-- The ffn for any number of tokens, which may split them over threads, gives the bytes of the kernels that it takes.
local function check_any(c)
    local v, calls = c.v, 0
    for _, tokens in ipairs(c.job.counts) do
        if affordable(c, tokens) then
            local x = c.random:x(tokens)
            local expected = c:ffn(v.ffn, x)
            local same = c:ffn(v.any_ffn, x) == expected
            if in_place_allowed(c) then same = c:ffn_in_place(v.any_ffn, x) == expected and same end
            if not same then
                local form = "%s, %d tokens: not the bytes of %s"
                return result("any number of tokens", false, form, v.any_ffn, tokens, v.ffn)
            end
            calls = calls + 1
        end
    end
    result("any number of tokens", true, "%d numbers of tokens give the bytes of %s", calls, v.ffn)
end

local function check_threads(c)
    local v, both = c.v, compiled.prepare(2, 1)
    local calls = affordable_calls(c, 2 * c.tokens, 2, thread_calls)
    process.stage(v.ffn .. " in two threads")
    for caller = 0, 1 do
        local y, scratch = compiled.memory(#c.y), compiled.memory(v.scratch_bytes)
        both:step(caller, c.own:find(v.ffn), false, c.weights, c.x, y, c.tokens, scratch)
        both:step(caller, compiled.memcmp, true, y, c.y, #c.y)
    end
    c.calls = c.calls + 2 * calls
    result("reentrant", both:together(calls), "two threads with their own scratch give the same bytes")
end

local function check_bind(c)
    local v, bytes, tried, accepted = c.v, c.facts.blob_bytes, 0, nil
    local room, whole = compiled.memory(v.weights_struct_bytes), c.blob
    local function try(from, size, to, form, ...)
        local what = form:format(...)
        tried = tried + 1
        if guarded(c.own, v.bind .. ", " .. what, from, size, to) == 0 then accepted = accepted or what end
    end
    try(nil, bytes, room, "a null pointer")
    try(whole, bytes, nil, "a null pointer for its struct")
    for _, size in ipairs { 0, 1, 4, header_bytes - 1, header_bytes, header_bytes + 1, 2 * header_bytes } do
        local short = { text = compiled.bytes(c.facts.blob, math.min(size, bytes)) }
        if size < bytes then try(short, size, room, "the first %d bytes of the blob", size) end
    end
    try(whole, bytes // 2, room, "half of the blob")
    try(whole, bytes - header_bytes, room, "the blob without its last 64 bytes")
    try(whole, bytes - 1, room, "the blob without its last byte")
    try(whole, bytes + header_bytes, room, "a blob 64 bytes longer than it is")
    local memory <close> = compiled.memory(bytes)
    local off <close> = compiled.memory(bytes, "unaligned")
    memory:copy(c.facts.blob)
    off:copy(c.facts.blob)
    try(off, bytes, room, "a blob 4 bytes off its alignment")
    for i, drawn in ipairs(random_numbers(c.facts.seed, header_bytes + payload_flips, 8 * (bytes - header_bytes))) do
        local bit, at = drawn % 8, i <= header_bytes and i - 1 or header_bytes + drawn // 8
        local byte = memory:read(1, at)
        memory:write(string.char(byte:byte() ~ 1 << bit), at)
        try(memory, bytes, room, "bit %d of byte %d of the blob flipped", bit, at)
        memory:write(byte, at)
    end
    if accepted then
        result("bind refuses", false, "%s accepts %s", v.bind, accepted)
    else
        result("bind refuses", true, "%d damaged blobs", tried)
    end
end

-- Codes, scores and outputs of all tokens together and of the first one alone.
local function check_quickly(c)
    local tally = lookup_reference.tally()
    c.random = take_codes(c, c.job.reference:sample("random", c.tokens), c.tokens, tally)
    result("codes", tally.wrong_codes == 0, "%d wrong %s", tally.wrong_codes, tally.first_code)
    result("scores", tally.wrong_scores == 0, "%d wrong %s", tally.wrong_scores, tally.first_score)
    for _, tokens in ipairs { c.tokens, 1 } do
        c.random:compare(c:ffn(c.v.ffn, c.random:x(tokens)), false, tally)
    end
    report(c, "ffn", tally)
end

local thorough = {
    check_project,
    check_gather,
    check_ffn,
    measure_error,
    check_nothing,
    check_repeatable,
    check_independent,
    check_special,
    check_not_finite,
    check_in_place,
    check_any,
    check_threads,
}

-- Runs all checks of a job, and says what comes of them.
local function run(job)
    local v = job.variant
    process.stage("opening " .. v.library)
    local c = variant.open(v, job.reference:facts())
    c.job, c.tokens, c.work = job, tokens_of(v), job.work or work
    local code, intact = c:bind(job.quick)
    local words = intact and "accepts the blob" or "writes beyond its struct"
    result("bind", code == 0 and intact, "%s", code ~= 0 and "code " .. code or words)
    if code ~= 0 then return "" end
    for _, check in ipairs(job.quick and { check_quickly } or thorough) do
        check(c)
    end
    if not job.quick and not job.bind_known then check_bind(c) end
    local calls = job.quick and "" or string.format("%d calls between guard pages", c.calls)
    result("stays in its buffers", not c.fault, "%s", c.fault or calls)
    if not job.quick then number("tokens", c.tokens) end
    return ""
end

-- What the process that runs the checks of a job has said, as a table.
local function result_of(running)
    local text, message, said = running:result()
    local found, at = { ok = true, checks = {} }, 1
    said = text or said
    while at <= #said do
        local kind, name, detail
        kind, name, detail, at = record:unpack(said, at)
        if kind == "j" or kind == "n" then
            found[name] = (kind:unpack(detail))
        else
            found.ok = found.ok and kind == "+"
            table.insert(found.checks, { name = name, ok = kind == "+", detail = detail })
        end
    end
    if not text then
        found.ok = false
        table.insert(found.checks, { name = "crashed", ok = false, detail = (message:gsub("^crashed: ", "")) })
    end
    return found
end

function checks.all(jobs, at_once)
    local running, results = {}, {}
    for i = 1, #jobs + at_once do
        if running[i - at_once] then
            results[i - at_once] = result_of(running[i - at_once])
            running[i - at_once] = nil
        end
        local job = jobs[i]
        if job then
            assert(job.reference:extend(tokens_of(job.variant)))
            running[i] = assert(process.begin(function() return run(job) end, job.timeout, job.patience))
        end
    end
    return results
end

return checks
