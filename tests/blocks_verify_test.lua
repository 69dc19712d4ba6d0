-- verify checks blocks of every kind on every instruction set, and finds templates that are wrong.
local check = require "tests.check"
local host = require "host"
local json = require "json"
local process = require "process"
local program = require "tests.program"

local test = {}
local folder = program.folder()

local function model(name, text) return program.model(folder, name, "return { name = '" .. name .. "', layers = 2, vocab = 30, " .. text .. " }") end

-- What verify finds of a model: all calls are within 1e-5 of the reference, and merged f32 weights of the unfused one.
local function verified(name, text, ...)
    local path = model(name, text)
    local found = json.decode(program.works { "verify", path, "--cflags", "-O1", "--json", ... })
    check.equal(found.ok, true)
    assert(#found.results > 0)
    for _, result in ipairs(found.results) do
        assert(result.kernel_rel_err > 0 and result.kernel_rel_err <= 1e-5, name)
        if result.rel_err and result.type == "f32" then assert(result.rel_err > 0 and result.rel_err <= 1e-5, name) end
    end
    return found
end

function test.norms_and_skip_connections()
    verified("fig4a", "d = 40, heads = 4, kv_heads = 2, skip = true, norm = { kind = 'rmsnorm' }, attention = { eliminate = 'QP', rope = {}, context = 40 }, ffn = { kind = 'glu', f = 33, activation = 'silu' }")
    verified("fig4b", "d = 32, heads = 2, parallel = true, skip = true, norm = { kind = 'layernorm' }, checkpoint = 'gpt_neox', attention = { eliminate = 'QP', rope = {}, context = 40 }, ffn = { kind = 'mlp', f = 40, activation = 'gelu_tanh' }")
    verified("post", "d = 32, heads = 2, skip = true, norm = { kind = 'layernorm', place = 'post' }, checkpoint = 'roberta', positions = 60, token_types = 1, attention = { causal = false, context = 58 }, ffn = { kind = 'mlp', f = 64, activation = 'gelu' }")
end

function test.windows_and_rotations()
    local found = verified("window", "d = 40, heads = 5, attention = { eliminate = 'KP', rope = { share = 0.5, pairs = 'interleaved' }, window = 37, context = 230 }, ffn = { kind = 'mlp', f = 50, activation = 'relu' }")
    check.equal(found.results[1].tokens, 230)
    verified("narrow", "d = 12, heads = 6, kv_heads = 1, attention = { eliminate = 'QP', window = 1, context = 70, scale = 1 }, ffn = { kind = 'glu', f = 7, activation = 'gelu' }")
end

function test.types()
    for _, type in ipairs { "bf16", "f16", "i8" } do
        local found = verified("typed", "d = 48, heads = 4, kv_heads = 2, attention = { eliminate = 'QP', rope = {}, context = 40 }, ffn = { kind = 'glu', f = 70, activation = 'silu' }", "--type", type)
        for _, result in ipairs(found.results) do assert(result.rel_err > 1e-4 and result.rel_err < 0.5, type) end
    end
end

-- Another project's checkout in which `change` was made to a template.
local function sabotaged(template, change)
    local tree = program.folder()
    for _, part in ipairs { "gen", "harness", "templates", "LICENSE" } do assert(process.run({ "cp", "-r", part, tree .. "/" .. part }).status == 0) end
    local text = assert(host.read(template))
    local changed = change(text)
    assert(changed ~= text, template .. " was not changed")
    assert(host.write_file(tree .. "/" .. template, changed))
    return tree
end

function test.wrong_templates_are_found()
    local path = model("wrong", "d = 32, heads = 4, kv_heads = 2, attention = { eliminate = 'QP', rope = {}, context = 40 }, ffn = { kind = 'glu', f = 48, activation = 'silu' }")
    local function replace(a, b) return function(text) return (text:gsub(a:gsub("%p", "%%%0"), (b:gsub("%%", "%%%%")))) end end
    for _, case in ipairs {
        { "templates/transformer_attention.c", replace("for (size_t k = seen; k <", "for (size_t k = seen + 1; k <"), "relative error" },
        { "templates/transformer_blocks.c", replace("b * cosine[i] + a * sine[i]", "b * cosine[i] - a * sine[i]"), "relative error" },
        { "templates/transformer.c", replace("if (tokens > $(shape.context) || first > $(shape.context) - tokens)", "if (tokens > $(shape.context) + first)"), "is not refused" },
    } do
        local result = program.run { "--tree", sabotaged(case[1], case[2]), "verify", path, "--isa", "scalar", "--cflags", "-O1" }
        check.equal(result.status, 1)
        check.matches(result.errors, case[3])
    end
end

return test
