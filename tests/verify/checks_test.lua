-- Every fault that is planted into kernels of a LookupFFN is found by the check that is for it.
local blob = require "gen.plan.blob"
local check = require "tests.support.check"
local compile = require "harness.base.compile"
local cpu = require "harness.base.cpu"
local host = require "host"
local isa = require "gen.isa.list"
local model_file = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local process = require "process"
local program = require "tests.support.program"
local stand_ins = require "tests.support.stand_ins"
local variant = require "harness.verify.variant"
local verify = require "harness.families.lookup.verify"
local weights = require "weights"

local test = {}
local folder = program.folder()
local tiny = assert(model_file.load "gen/models/tiny.lua")
local p = plan.build(tiny, isa.select "scalar", nil, "f32", "f32")

local ffn, few, project = "tiny_ffn__scalar_many", "tiny_ffn__scalar_few", "tiny_project__scalar_many"
local gather, public, any, bind = "tiny_gather_f32__scalar_t", "tiny_ffn(", "tiny_ffn__scalar(", "tiny_bind("

-- The check that fails first, the function that is wrong, and the statements behind its declarations and at its end.
local faults = {
    { "crashed", ffn, last = "y[tokens * 64] = 0;" },
    { "crashed", ffn, last = "y[-1] = 0;" },
    { "crashed", ffn, last = "sink = x[tokens * 64];" },
    { "crashed", ffn, last = "sink = x[-1];" },
    { "crashed", ffn, last = "if (x != y) ((float *) x)[0] = 0;" },
    { "crashed", ffn, first = "if (tokens == 0) y[0] = 0;" },
    { "crashed", ffn, last = "((char *) scratch)[TINY_SCRATCH_BYTES] = 1;" },
    { "crashed", few, last = "if (tokens == 1) ((char *) scratch)[TINY_SCRATCH_BYTES_ONE] = 1;" },
    { "crashed", project, last = "code[(tokens + 7) / 8 * 64] = 0;" },
    { "crashed", project, last = "if (tokens == 9) exit(0);" },
    { "codes", project, last = "code[0] ^= 1;" },
    { "codes", project, last = "code[0] |= 64;" },
    { "scores", project, last = "score[0] *= 1.01f;" },
    { "gather", gather, last = "y[3] += 1e-3f * (1 + y[3]);" },
    { "gather", gather, last = "if (tokens > 9) y[tokens * 64 - 1] = y[tokens * 64 - 2];" },
    { "x and y aligned to 4 bytes", ffn, last = "if ((size_t) x % 8) y[0] += 1;" },
    { "public ffn", public, last = "if (tokens == 33) y[0] += 1;" },
    { "repeatable", ffn, last = "y[0] += 1e-6f * (float) calls++;" },
    { "scratch content", ffn, first = "sink = *(float *) scratch;", last = "y[0] += sink == 0 ? 1e-6f : 0;" },
    { "independent", ffn, last = "if (tokens == 1) y[0] += 1e-5f * (1 + y[0]);" },
    { "ties and special inputs", project, last = "if (x[0] == 0 && x[1] == 0) code[0] ^= 1;" },
    { "NaN", project, last = "if (tokens > 4 && x[288] != x[288]) code[4] = 1;" },
    { "NaN", ffn, last = "if (tokens > 4 && x[288] != x[288]) y[256] = 0;" },
    { "NaN", ffn, last = "if (tokens > 4 && x[288] != x[288]) y[0] = 0;" },
    { "in place", ffn, first = "y[64 * (tokens - 1)] = 0;" },
    { "any number of tokens", any, last = "if (tokens == 5) y[0] += 1e-6f;" },
    { "bind", bind, first = "if (bytes) return 7;" },
    { "bind", bind, first = "if (weights) memset(weights, 0, sizeof *weights + 1);" },
    { "bind refuses", bind, first = "if (bytes > 999 && weights && blob && header[0] != 'L') return TINY_OK;" },
    { "stays in its buffers", ffn, last = "if (tokens == 33 && (size_t) y % 4096 == 0) y[33 * 64] = 0;" },
}

local head = [[
#ifndef PLANTED
#define PLANTED
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static volatile float sink;
static volatile int calls, which = -1;
static int planted(int number)
{
    if (which < 0) {
        FILE *file = fopen("%s/fault", "r");
        if (!file || fscanf(file, "%%d", &which) != 1)
            which = 0;
        fclose(file);
    }
    return which == number + 0 * calls + 0 * (int) sink;
}
#endif
]]

-- The library with all faults: the number in the file `fault` of the folder says which one is there.
local function library_of(directory)
    local contents, units = compile.sources { p }
    for name, text in pairs(contents) do
        local before = text
        for i, fault in ipairs(faults) do
            local _, open = text:find("\n%l+ " .. fault[2]:gsub("%(", "%%(") .. "[^;{]*\n{\n")
            for place, ends in pairs { first = "\n\n", last = "\n}\n" } do
                local at = open and fault[place] and text:find(ends, open, true)
                if at then
                    local guard = fault[2] == bind and "" or "tokens && "
                    if fault[place]:find "tokens == 0" then guard = "" end
                    local line = string.format("\n    if (%splanted(%d)) { %s }", guard, i, fault[place])
                    text, fault.planted = text:sub(1, at - 1) .. line .. text:sub(at), true
                end
            end
        end
        contents[name] = text == before and text or head:format(folder) .. text
    end
    assert(host.write_directory(directory, contents, true))
    local library = directory .. "/wrong.so"
    local commands, link = compile.commands(units, directory, library, "gcc", "-O0 -w")
    commands[#commands + 1] = link
    for _, command in ipairs(commands) do
        local result = assert(process.run(command))
        check.equal({ result.status, result.output }, { 0, "" })
    end
    return library
end

-- The name of the first check that fails, nil: none does.
local function failure_of(library, files)
    for _, result in ipairs(verify.variants(p, library, files, 1, 1, { work = 2e6 })) do
        for _, row in ipairs(result.checks) do
            if not row.ok then return row.name end
        end
    end
end

function test.planted_faults_are_found()
    local files = { weights = folder .. "/w.safetensors", prefix = "", output = folder .. "/w.bin" }
    assert(weights.sample(files.weights, "", p.tensors, 1))
    assert(weights.pack(blob.packing(p, files)))
    local library = library_of(folder)
    for i = 0, #faults do
        assert(host.write_file(folder .. "/fault", tostring(i)))
        local fault = faults[i] or { planted = true }
        check.equal({ i, fault.planted, failure_of(library, files) }, { i, true, fault[1] })
    end
end

-- The first check of each stage of plan `own` that fails, "none": all pass.
local function failures_of(own, library, files)
    local names = {}
    for i, result in ipairs(verify.variants(own, library, files, 1, 1, { work = 1e7 })) do
        names[i] = "none"
        for _, row in ipairs(result.checks) do
            if not row.ok and names[i] == "none" then names[i] = row.name end
        end
    end
    return names
end

function test.a_projection_multiplied_out_has_a_reference_of_its_own()
    local m = assert(model_file.validate({
        name = "out",
        d = 24, -- two repeats of 32 outputs
        h = 6,
        tau = 7,
        projection = { kind = "bh4", block = 8 },
        score = "gelu",
        norm = { kind = "layernorm" },
    }, "", "out"))
    local wanted = { scalar = { ["project.dense"] = 1, ["few.threshold"] = 4 } }
    local own = plan.build(m, isa.select "scalar", wanted, "f32", "i8", { multiply_out = true })
    local files = { weights = folder .. "/out.safetensors", prefix = "", output = folder .. "/out.bin" }
    assert(weights.sample(files.weights, "", own.tensors, 1))
    assert(weights.pack(blob.packing(own, files)))
    local library = compile.library({ own }, folder .. "/out", "gcc", "-O0")
    check.equal(failures_of(own, library, files), { "none", "none" })
    files.multiplied_out = files.reference -- BH4's, which rounds the inputs of four products
    check.equal(failures_of(own, library, files), { "ffn", "none" })
end

function test.scores_of_8_bits_have_bounds_of_their_own_and_keep_to_a_budget()
    local set = isa.get "avx2"
    if not isa.runs(set, cpu.describe()) then return host.print "skipped: scores of 8 bits: needs AVX2" end
    local m = assert(model_file.load "gen/models/tiny.lua")
    local own = plan.build(m, { set }, { avx2 = { ["gather.byte_scores"] = 1 } }, "i8") -- not of few tokens
    local files = { weights = folder .. "/bytes.safetensors", prefix = "", output = folder .. "/bytes.bin" }
    assert(weights.sample(files.weights, "", own.tensors, 1))
    assert(weights.pack(blob.packing(own, files)))
    local library = compile.library({ own }, folder .. "/bytes", "gcc", "-O0")
    check.equal(failures_of(own, library, files), { "none", "none" })
    m.budget = 8e-3 -- 9.4e-3 with them, else 6.6e-3
    check.equal(failures_of(own, library, files), { "budget", "none" })
    m.budget = nil
    files["reference, scores in 8 bits"] = files.reference
    check.equal(failures_of(own, library, files), { "gather", "none" })
end

-- A projection multiplied out of so many bits by the set `name`, tokens by `vectors` of 16, and its packed weights.
local function dense_plan(name, set, projection, bits, vectors)
    local m = assert(model_file.validate({
        name = "dense_" .. name,
        d = 128,
        h = bits // (vectors + 3),
        tau = vectors + 3,
        projection = { kind = "bh4", block = 16 },
        score = "gelu",
    }, "", "dense"))
    local wanted = { [set.name] = { ["project.dense"] = 1, ["tile.vectors"] = vectors, ["few.threshold"] = 4 } }
    local own = plan.build(m, { set }, wanted, "f32", projection, { multiply_out = true })
    local path = folder .. "/" .. name
    local files = { weights = path .. ".safetensors", prefix = "", output = path .. ".bin" }
    assert(weights.sample(files.weights, "", own.tensors, vectors))
    assert(weights.pack(blob.packing(own, files)))
    return own, files
end

-- Codes and scores of 40 tokens.
local function projected(own, library, files)
    local x = {}
    for i = 1, 40 * 128 do
        x[i] = string.pack("<f", math.sin(i * i))
    end
    local v = compile.describe(own, own.variants[1], library, "many", 1)
    local c = variant.open(v, verify.reference_of(own, files, 1, "multiplied_out"):facts())
    check.equal(c:bind(true), 0)
    return { c:project(table.concat(x)) }
end

-- Projections on the matrix engine of set `name`: `shapes`, { bits, tokens by so many vectors of 16 }; `vectors`,
-- optional: the set of vectors that makes the same codes and scores, to the bit.
local function project_by_tiles(name, projection, shapes, vectors)
    local set, header = stand_ins.get(name)
    if not set then return end
    local list, packed = {}, {}
    local function add(own_name, own_set, shape)
        list[#list + 1], packed[#packed + 1] = dense_plan(own_name, own_set, projection, table.unpack(shape))
        return list[#list].variants[1].stages[1].projection.tiled
    end
    for i, shape in ipairs(shapes) do
        check.equal(add("tiles_" .. i, set, shape).panels, (shape[1] + 15) // 16)
    end
    if vectors then check.equal(add("vectors", stand_ins.get(vectors), shapes[#shapes]), nil) end
    local library = stand_ins.library(list, string.format("%s/%s_%d", folder, name, shapes[1][1]), header)
    for i in ipairs(shapes) do
        for _, result in ipairs(verify.variants(list[i], library, packed[i], 1, 1, { work = 1e6 })) do
            for _, row in ipairs(result.checks) do
                if not row.ok then error(result.regime .. ": " .. row.name .. ": " .. row.detail, 0) end
            end
        end
    end
    local last = #shapes
    if vectors then
        check.equal(projected(list[last], library, packed[last]), projected(list[last + 1], library, packed[last + 1]))
    end
end

-- Numbers of 16 bits are split into bytes: codes and scores are the same to the bit as those by vectors.
function test.a_matrix_engine_projects_numbers_of_16_bits_to_the_bit()
    project_by_tiles("amx_int8", "i16", { { 40, 2 } }, "avx512")
end

-- Panels of 16 outputs by two, and where their number is odd and the last one is narrow.
function test.a_matrix_engine_projects_bytes_as_vectors_do()
    project_by_tiles("amx_int8", "i8", { { 32, 1 }, { 40, 2 } })
end

function test.a_matrix_engine_projects_to_as_many_outputs_as_inputs()
    project_by_tiles("amx_int8", "i8", { { 128, 1 } })
end

function test.a_matrix_engine_projects_in_bf16() project_by_tiles("amx_bf16", "bf16", { { 40, 1 } }) end

return test
