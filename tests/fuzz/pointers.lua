-- Runs kernels as tcc compiles them with -b, which watches every pointer that is added to: none may leave its buffer,
-- not even to be prefetched from or to end a loop.
local emit = require "gen.emit.emit"
local expression = require "gen.isa.expression"
local host = require "host"
local process = require "process"

local pointers = {}

-- Portable C that prefetches: what it prefetches is an address like any other.
pointers.set = {}
for key, value in pairs(require "gen.isa.scalar") do
    pointers.set[key] = value
end
for _, word in ipairs { "prefetch_l1", "prefetch_l2", "prefetch_nta" } do
    pointers.set[word] = function(base, offset) return "(void) (" .. expression.sum(base, offset) .. ")" end
end

local head = [[
#include "%s"

#include <stdlib.h>

static uint32_t state = 1;

/* So many floats of random values around 0, or other elements of random bits. */
static void *drawn(size_t count, size_t bytes, int floats)
{
    unsigned char *memory = malloc(count * bytes);
    if (!memory)
        exit(2);
    for (size_t i = 0; i < count; ++i) {
        state = state * 1664525u + 1013904223u;
        if (floats)
            ((float *) memory)[i] = (float) (state >> 8) / 8388608.0f - 1.0f;
        else
            for (size_t k = 0; k < bytes; ++k)
                memory[i * bytes + k] = (unsigned char) (bytes == 1 ? 1 + state %% 3 : state >> 8 * k & 0x0f);
    }
    return memory;
}

int main(void)
{
    %s weights;
]]

-- Lines of C that give `name` so many elements of `storage`.
local function array(name, storage, count)
    return string.format(
        "    %s *%s = drawn(%d, sizeof(%s), %d);",
        storage,
        name,
        count,
        storage,
        storage == "float" and 1 or 0
    )
end

-- The calls of a layer for some numbers of tokens, each with arrays of its own.
local function layer_calls(p, input, output)
    local lines = {}
    for _, tokens in ipairs { 1, 2, 7, math.min(67, ((p.variants[1].stages or p.variants)[1].chunk or 1) + 1) } do
        lines[#lines + 1] = "    {"
        lines[#lines + 1] = array("x", input, tokens * p.shape.d)
        lines[#lines + 1] = array("y", output, tokens * p.shape.d_out)
        lines[#lines + 1] = string.format("    %s(&weights, x, y, %d, scratch);", p.names.ffn, tokens)
        lines[#lines + 1] = "    }"
    end
    return lines
end

-- The calls of a transformer that fill its cache to the last position.
local function block_calls(p)
    local shape = p.shape
    local all = math.min(shape.context, shape.most_tokens, 150)
    local lines = { array("cache", "uint8_t", p.cache_bytes), array("x", "float", all * shape.input) }
    lines[#lines + 1] = array("y", "float", all * shape.d)
    local function call(name, ...)
        local numbers = table.concat({ ... }, ", ")
        lines[#lines + 1] = string.format("    if (%s(&weights, cache, x, y, %s, scratch))", name, numbers)
        lines[#lines + 1] = "        return 3;"
    end
    if shape.causal then
        call(p.names.prefill, 0, all)
        call(p.names.decode, all - 1)
    elseif shape.sequences then
        -- One of all tokens that fit, and one of none.
        call(p.names.encode_batch, string.format("(const size_t[]){ 1, %d, %d }", all + 1, all + 1), 2)
    else
        call(p.names.encode, all)
    end
    return lines
end

-- The calls of a whole model: a decoder is filled to its last position, an encoder gets sequences of several lengths.
local function whole_calls(p)
    local all = math.min(p.context, 100)
    local lines = { "    int32_t *ids = calloc(400, sizeof *ids);", array("y", "float", 2 * all * p.widths.out) }
    local function call(name, arguments)
        lines[#lines + 1] = string.format("    if (%s(&weights, %s, y, scratch))\n        return 3;", name, arguments)
    end
    if p.causal then
        lines[#lines + 1] = array("state", "uint8_t", p.state_bytes)
        lines[#lines + 1] = string.format("    %s(state);", p.names.start)
        if all > 1 then call(p.names.prefill_all, "state, ids, " .. all - 1) end
        call(p.names.step, "state, 0")
        lines[#lines + 1] = string.format("    %s(state);", p.names.start)
        call(p.names.prefill, "state, ids, " .. all)
    else
        call(p.names.encode, "ids, " .. all)
        call(p.names.encode_batch, string.format("ids, (const size_t[]){ 0, 1, %d }, 2", all + 1))
    end
    return lines
end

-- What is wrong with the pointers of plan `p`, for the set above: what tcc prints when it runs, nil: nothing is.
-- `change` may change the text of a source, given its template's path.
function pointers.wrong(p, directory, change)
    local command, family = { "tcc", "-b", "-w", "-o", directory .. "/program", directory .. "/main.c" }, p.family
    for _, file in ipairs(emit.sources(p)) do
        local text = change and change(file.text) or file.text
        assert(host.write_file(directory .. "/" .. file.name, text))
        if file.name:find "%.c$" then command[#command + 1] = directory .. "/" .. file.name end
    end
    local lines = { string.format(head, p.names.runtime, p.names.weights) }
    for _, section in ipairs(p.sections) do
        lines[#lines + 1] = string.format(
            "    weights.%s = drawn(%d, sizeof *weights.%s, %d);",
            section.name,
            section.count,
            section.name,
            section.storage == "float" and 1 or 0
        )
    end
    lines[#lines + 1] = array("scratch", "uint8_t", p.scratch_bytes)
    local calls = family == "transformer" and block_calls(p)
        or family == "whole" and whole_calls(p)
        or layer_calls(p, p.input, p.output)
    table.move(calls, 1, #calls, #lines + 1, lines)
    lines[#lines + 1] = "    return 0;\n}\n"
    assert(host.write_file(directory .. "/main.c", table.concat(lines, "\n")))
    local compiled = assert(process.run(command, { env = { LD_PRELOAD = "" } }))
    if compiled.status ~= 0 then return "tcc: " .. compiled.output end
    local ran = assert(process.run({ "sh", "-c", 'exec "$0" 2>&1', directory .. "/program" }, {
        env = { LD_PRELOAD = "", TCC_BOUNDS_WARN_POINTER_ADD = "1" },
        timeout = 120,
    }))
    if ran.status == 0 and ran.output == "" then return nil end
    return string.format("status %d: %s", ran.status, ran.output:sub(1, 600))
end

return pointers
