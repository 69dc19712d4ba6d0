-- A model file is accepted by every rule of the schema, or refused in one line that says file, line, field, value and
-- rule.
local check = require "tests.support.check"
local host = require "host"
local model = require "gen.families.model_file"
local process = require "process"
local schema = require "gen.schema.schema"
local score = require "gen.plan.score"

local path = process.temporary_directory() .. "/m.lua"
local scores = 'must be "' .. table.concat(score.names, '" or "') .. '"'

local function load(source)
    assert(host.write_file(path, source))
    return model.load(path)
end

-- A table with the changes made; `false` takes a key away.
local function with(base, changes)
    local copy = {}
    for key, value in pairs(base) do
        copy[key] = value
    end
    for key, value in pairs(changes) do
        copy[key] = value
        if value == false then copy[key] = nil end
    end
    return copy
end

local bh4 = { name = "m", d = 64, h = 8, tau = 6, projection = { kind = "bh4", block = 16 }, score = "gelu" }
local dense = with(bh4, { projection = { kind = "dense" } })

local function accepts(given) return model.validate(given, "", "m.lua") end

-- The whole message of a model that is refused.
local function refuses(given, message)
    local good, actual = pcall(model.validate, given, "", "m.lua")
    if good then error("accepted, expected: " .. message, 2) end
    if actual ~= "m.lua: " .. message then
        error(string.format("got %q, expected %q", actual, "m.lua: " .. message), 2)
    end
end

-- The same for a source, whose message starts with the line.
local function refuses_source(source, message)
    local good, actual = pcall(load, source)
    if good then error("accepted, expected: " .. message, 2) end
    if actual ~= path .. message then error(string.format("got %q, expected %q", actual, path .. message), 2) end
end

local test = {}

function test.defaults()
    check.equal(accepts(bh4), {
        name = "m",
        d = 64,
        d_out = 64,
        h = 8,
        tau = 6,
        projection = { kind = "bh4", block = 16, decay = 0.7 },
        score = "gelu",
        scale = "none",
        neighbours = 1,
    })
    check.equal(accepts(with(dense, { norm = { kind = "layernorm" }, d_out = 3 })), {
        name = "m",
        d = 64,
        d_out = 3,
        h = 8,
        tau = 6,
        projection = { kind = "dense" },
        score = "gelu",
        scale = "none",
        neighbours = 1,
        norm = { kind = "layernorm", eps = 1e-5 },
    })
end

function test.every_value_that_is_given_is_kept()
    local given = {
        name = "a_1",
        d = 100,
        d_out = 7,
        h = 3,
        tau = 16,
        projection = { kind = "bh4", block = 128, decay = 0.25 },
        score = "softmax",
        scale = "1/h",
        norm = { kind = "layernorm", eps = 1e-3 },
        neighbours = 65536,
    }
    check.equal(accepts(given), given)
end

function test.what_is_given_is_not_changed()
    local given = with(bh4, { d = 64.0 })
    accepts(given)
    check.equal(given, with(bh4, { d = 64.0 }))
end

function test.the_examples_are_valid()
    for _, name in ipairs { "tiny", "kws", "roberta_small", "roberta_base" } do
        local m = model.load("gen/models/" .. name .. ".lua")
        check.equal(m.name, name)
        check.equal(m.norm, { kind = "layernorm", eps = 1e-5 })
    end
    for _, name in ipairs(assert(host.list("gen/models"))) do
        check.equal(model.load("gen/models/" .. name).name, (name:gsub("%.lua$", "")))
    end
end

function test.an_integer_may_be_written_as_a_float()
    check.equal(accepts(with(bh4, { d = 512.0, projection = { kind = "bh4", block = 64.0 } })).d, 512)
    check.equal(accepts(with(bh4, { d = 512.0, projection = { kind = "bh4", block = 64.0 } })).projection.block, 64)
    check.equal(accepts(with(bh4, { projection = { kind = "bh4", block = 16, decay = 1.0 } })).projection.decay, 1)
    refuses(with(bh4, { d = 512.5 }), "d = 512.5: must be an integer from 1 to 65536")
end

function test.integers_out_of_range()
    for _, case in ipairs {
        { "d", 1, 65536 },
        { "d_out", 1, 65536 },
        { "h", 1, 65536 },
        { "tau", 1, 16 },
        { "neighbours", 1, 65536 },
    } do
        local key, first, last = table.unpack(case)
        local rule = string.format(": must be an integer from %d to %d", first, last)
        for value, text in pairs {
            [first - 1] = first - 1,
            [last + 1] = last + 1,
            [-5] = -5,
            [1.5] = 1.5,
            [1e300] = "1e+300",
            [1 / 0] = "inf",
            [math.mininteger] = math.mininteger,
            ["8"] = '"8"',
            [true] = "true",
        } do
            refuses(with(dense, { [key] = value }), key .. " = " .. text .. rule)
        end
        refuses(with(dense, { [key] = {} }), key .. " = {...}" .. rule)
        refuses(with(dense, { [key] = { kind = 1 } }), key .. " = {...}" .. rule)
    end
    check.matches(
        select(2, pcall(accepts, with(dense, { d = 0 / 0 }))),
        "^m.lua: d = %-?nan: must be an integer from 1 to 65536$"
    )
end

function test.ends_of_the_ranges()
    check.equal(accepts(with(dense, { d = 1, d_out = 1, h = 1, tau = 1, neighbours = 1 })).d_out, 1)
    check.equal(accepts(with(dense, { d = 65536, d_out = 1, h = 1, tau = 16 })).d, 65536)
    check.equal(accepts(with(dense, { d_out = 65536, h = 1, tau = 1 })).d_out, 65536)
    check.equal(accepts(with(dense, { h = 65536 })).h, 65536)
    check.equal(accepts(with(bh4, { d = 1, projection = { kind = "dense" } })).d_out, 1)
end

function test.words_out_of_a_list()
    refuses(with(bh4, { score = "GELU" }), 'score = "GELU": ' .. scores)
    refuses(with(bh4, { score = 1 }), "score = 1: " .. scores)
    accepts(with(bh4, { score = "one", neighbours = 63 }))
    refuses(
        with(bh4, { score = "one", neighbours = 64 }),
        'neighbours = 64: must be below 2^tau = 64 with score "one": the sum of all rows would be the same for every \z
            token'
    )
    refuses(with(bh4, { scale = "1/d" }), 'scale = "1/d": must be "none" or "1/h"')
    refuses(with(bh4, { scale = 1 }), 'scale = 1: must be "none" or "1/h"')
    refuses(with(bh4, { projection = { kind = "fft" } }), 'projection.kind = "fft": must be "bh4" or "dense"')
    refuses(with(bh4, { norm = { kind = "rmsnorm" } }), 'norm.kind = "rmsnorm": must be "layernorm"')
end

function test.numbers()
    for value, text in pairs { [0] = "0", [1e-13] = "1e-13", [1.5] = "1.5", [-1e-5] = "-1e-05", [1 / 0] = "inf" } do
        refuses(
            with(bh4, { norm = { kind = "layernorm", eps = value } }),
            "norm.eps = " .. text .. ": must be a number from 1e-12 to 1"
        )
    end
    refuses(
        with(bh4, { norm = { kind = "layernorm", eps = "1e-5" } }),
        'norm.eps = "1e-5": must be a number from 1e-12 to 1'
    )
    check.matches(
        select(2, pcall(accepts, with(bh4, { norm = { kind = "layernorm", eps = 0 / 0 } }))),
        "^m.lua: norm.eps = %-?nan: must be a number"
    )
    for _, eps in ipairs { 1e-12, 1e-5, 1 } do
        check.equal(accepts(with(bh4, { norm = { kind = "layernorm", eps = eps } })).norm.eps, eps)
    end
    for value, text in pairs { [-0.1] = "-0.1", [1.01] = "1.01", [-1] = "-1", [2] = "2" } do
        refuses(
            with(bh4, { projection = { kind = "bh4", block = 16, decay = value } }),
            "projection.decay = " .. text .. ": must be a number from 0 to 1"
        )
    end
    for _, decay in ipairs { 0, 0.5, 1 } do
        check.equal(
            accepts(with(bh4, { projection = { kind = "bh4", block = 16, decay = decay } })).projection.decay,
            decay
        )
    end
end

function test.tables()
    refuses(with(bh4, { projection = "bh4" }), 'projection = "bh4": must be a table of kind, block, decay')
    refuses(with(bh4, { norm = "layernorm" }), 'norm = "layernorm": must be a table of kind, eps')
    refuses(with(bh4, { norm = 1 }), "norm = 1: must be a table of kind, eps")
end

function test.required_keys()
    for key, rule in pairs {
        name = require("gen.schema.names").rule,
        d = "must be an integer from 1 to 65536",
        h = "must be an integer from 1 to 65536",
        tau = "must be an integer from 1 to 16",
        projection = "must be a table of kind, block, decay",
        score = scores,
    } do
        refuses(with(bh4, { [key] = false }), key .. ": required key is missing; it " .. rule)
    end
    refuses({}, "name: required key is missing; it " .. require("gen.schema.names").rule)
    refuses(
        with(bh4, { projection = { block = 16 } }),
        'projection.kind: required key is missing; it must be "bh4" or "dense"'
    )
    refuses(
        with(bh4, { projection = { kind = "bh4" } }),
        "projection.block: required key is missing; it must be an integer from 2 to 65536"
    )
    refuses(with(bh4, { norm = {} }), 'norm.kind: required key is missing; it must be "layernorm"')
end

function test.unknown_keys_suggest_the_nearest()
    for misspelt, key in pairs {
        dd = "d",
        D = "d",
        nam = "name",
        name_ = "name",
        taus = "tau",
        tua = "tau",
        projecton = "projection",
        porjection = "projection",
        Score = "score",
        sclae = "scale",
        neighbors = "neighbours",
        neighbour = "neighbours",
        dout = "d_out",
        d_uot = "d_out",
        nrom = "norm",
    } do
        refuses(with(bh4, { [misspelt] = 1 }), misspelt .. ' = 1: unknown key; did you mean "' .. key .. '"?')
    end
    refuses(
        with(bh4, { projection = { kind = "bh4", blok = 16 } }),
        'projection.blok = 16: unknown key; did you mean "block"?'
    )
    refuses(
        with(bh4, { norm = { kind = "layernorm", epsilon = 1e-5 } }),
        "norm.epsilon = 1e-05: unknown key; the keys are kind, eps"
    )
end

function test.unknown_keys_far_from_all_get_the_list()
    local list =
        "unknown key; the keys are name, d, d_out, h, tau, projection, score, scale, norm, neighbours, integer, \z
        same_codes, budget"
    refuses(with(bh4, { activation = "relu" }), 'activation = "relu": ' .. list)
    refuses(with(bh4, { 5 }), "1 = 5: " .. list)
    refuses(with(bh4, { [""] = 5 }), '[""] = 5: unknown key; did you mean "d"?')
    refuses(with(bh4, { ["a\nbcdefgh"] = 5 }), '["a\\nbcdefgh"] = 5: ' .. list)
    refuses(with(bh4, { [("x"):rep(100)] = 5 }), '["' .. ("x"):rep(57) .. '..."] = 5: ' .. list)
    check.equal(schema.nearest("verfiy", { "plan", "verify" }), "verify")
    check.equal(schema.nearest("zzz", { "plan", "verify" }), nil)
    check.equal(schema.nearest(("plan"):rep(1 << 18), { "plan", "verify" }), nil) -- at once
end

function test.the_first_of_several_errors_is_always_the_same()
    for _ = 1, 20 do
        refuses(
            with(bh4, { aaaaaaa = 1, bbbbbbb = 2, tau = 99 }),
            "aaaaaaa = 1: unknown key; the keys are name, d, d_out, h, tau, projection, score, scale, norm, \z
                neighbours, integer, same_codes, budget"
        )
    end
end

function test.keys_of_one_kind_only()
    refuses(with(bh4, { projection = { kind = "dense", block = 16 } }), 'projection.block = 16: only for kind = "bh4"')
    refuses(
        with(bh4, { projection = { kind = "dense", decay = 0.7 } }),
        'projection.decay = 0.7: only for kind = "bh4"'
    )
    check.equal(accepts(dense).projection, { kind = "dense" })
end

function test.blocks()
    for _, block in ipairs { 2, 4, 64 } do
        check.equal(accepts(with(bh4, { projection = { kind = "bh4", block = block } })).projection.block, block)
    end
    for _, block in ipairs { 3, 48, 63, 65, 128 } do
        refuses(
            with(bh4, { projection = { kind = "bh4", block = block } }),
            "projection.block = " .. block .. ": must be a power of two from 2 to 64 (d padded to a power of two)"
        )
    end
    for _, block in ipairs { 1, 0, -2, 131072 } do
        refuses(
            with(bh4, { projection = { kind = "bh4", block = block } }),
            "projection.block = " .. block .. ": must be an integer from 2 to 65536"
        )
    end
    check.equal(accepts(with(bh4, { d = 65, projection = { kind = "bh4", block = 128 } })).projection.block, 128)
    refuses(
        with(bh4, { d = 65, projection = { kind = "bh4", block = 256 } }),
        "projection.block = 256: must be a power of two from 2 to 128 (d padded to a power of two)"
    )
    check.equal(accepts(with(bh4, { d = 65536, projection = { kind = "bh4", block = 65536 } })).projection.block, 65536)
end

function test.names()
    refuses(with(bh4, { name = "Tiny" }), 'name = "Tiny": ' .. require("gen.schema.names").rule)
    refuses(with(bh4, { name = "a\nb" }), 'name = "a\\nb": ' .. require("gen.schema.names").rule)
    refuses(
        with(bh4, { name = ("x"):rep(1000) }),
        'name = "' .. ("x"):rep(57) .. '...": ' .. require("gen.schema.names").rule
    )
    refuses( -- cut at the end of a character
        with(bh4, { name = ("\u{e9}"):rep(100) }),
        'name = "' .. ("\u{e9}"):rep(28) .. '...": ' .. require("gen.schema.names").rule
    )
    refuses(with(bh4, { name = 5 }), "name = 5: " .. require("gen.schema.names").rule)
end

function test.huge_tables()
    -- 2^22 entries of 2^16 rows of 4 floats: one TiB exactly.
    check.equal(accepts(with(dense, { h = 65536, tau = 16, d_out = 64 })).h, 65536)
    refuses(
        with(dense, { h = 65536, tau = 16, d_out = 65 }),
        "h = 65536: tables of h * 2^tau * d_out float32 take 1.0 TiB, at most 1 TiB is allowed"
    )
    refuses(
        with(dense, { h = 65536, tau = 16, d_out = 65536 }),
        "h = 65536: tables of h * 2^tau * d_out float32 take 1024.0 TiB, at most 1 TiB is allowed"
    )
end

function test.budget()
    check.equal(accepts(with(bh4, { budget = 1e-2 })).budget, 1e-2)
    check.equal(accepts(bh4).budget, nil)
    for shown, value in pairs { ["0"] = 0, ["-0.001"] = -1e-3, ["1.5"] = 1.5, ['"1e-2"'] = "1e-2" } do
        refuses(with(bh4, { budget = value }), "budget = " .. shown .. ": must be a number above 0, at most 1")
    end
end

function test.neighbours()
    check.equal(accepts(with(bh4, { neighbours = 64 })).neighbours, 64)
    refuses(with(bh4, { neighbours = 65 }), "neighbours = 65: must be at most 2^tau = 64")
    check.equal(accepts(with(dense, { h = 16, tau = 16, neighbours = 65536 })).neighbours, 65536)
    refuses(
        with(dense, { h = 17, tau = 16, neighbours = 65536 }),
        "neighbours = 65536: h * neighbours = 1114112 rows a token, at most 1048576 are allowed"
    )
end

local good = [===[
-- tau = 1
--[==[ tau = 2
 ]] tau = 3
]==]
local tau = "tau = 4" --[[ tau = 5 ]] local other = { tau = 6, [ [=[tau]=] ] = { tau = 7 } }
return {
    name = "tiny", -- tau = 8
    d = 64, tau_of = nil, x = nil,
    h = 8, projection = { kind = "bh4", block = 16,
        decay = 0.7 },
    norm = { kind = "layernorm",
        eps = 1e-5 },
    tau = 6, score = 'gelu',
}
]===]

function test.lines_of_keys()
    check.equal(load(good).tau, 6)
    local function changed(from, to, message)
        local at, last = good:find(from, good:find("return", 1, true), true)
        refuses_source(good:sub(1, at - 1) .. to .. good:sub(last + 1), message)
    end
    changed("tau = 6", "tau = 60", ":13: tau = 60: must be an integer from 1 to 16")
    changed("d = 64", "d = 0", ":8: d = 0: must be an integer from 1 to 65536")
    changed(
        "block = 16",
        "block = 17",
        ":9: projection.block = 17: must be a power of two from 2 to 64 (d padded to a power of two)"
    )
    changed("decay = 0.7", "decay = 7", ":10: projection.decay = 7: must be a number from 0 to 1")
    changed("eps = 1e-5", "eps = 2", ":12: norm.eps = 2: must be a number from 1e-12 to 1")
    changed('kind = "layernorm"', 'kind = "bh4"', ':11: norm.kind = "bh4": must be "layernorm"')
    changed("score = 'gelu'", "score = 'tau = 6'", ':13: score = "tau = 6": ' .. scores)
    changed('name = "tiny"', "name = 'd\\'= {'", ':7: name = "d\'= {": ' .. require("gen.schema.names").rule)
end

function test.lines_of_unknown_and_missing_keys()
    local function source(top, projection)
        return "return {\n name = 'm', d = 64, h = 8, tau = 6, score = 'gelu',\n projection = {\n kind = 'bh4', block \z
            = 16" .. projection .. "\n},\n" .. top .. "\n}\n"
    end
    check.equal(load(source("", "")).name, "m")
    refuses_source(
        source('norm = {\n kind = "layernorm", ["eps"] = 2 }', ""),
        ":7: norm.eps = 2: must be a number from 1e-12 to 1"
    )
    -- The same key is known one level deeper, or belongs one level higher.
    refuses_source(
        source("block = 16", ""),
        ":6: block = 16: unknown key; the keys are name, d, d_out, h, tau, projection, score, scale, norm, \z
            neighbours, integer, same_codes, budget"
    )
    refuses_source(source("", ", tau = 6"), ":4: projection.tau = 6: unknown key; the keys are kind, block, decay")
    refuses_source(source("norm = {}", ""), ':6: norm.kind: required key is missing; it must be "layernorm"')
    refuses_source(
        source("norm = {\n}, kind = 1", ""),
        ":7: kind = 1: unknown key; the keys are name, d, d_out, h, tau, projection, score, scale, norm, neighbours, \z
            integer, same_codes, budget"
    )
    refuses_source("return {\n name = 'm' }", ": d: required key is missing; it must be an integer from 1 to 65536")
end

function test.keys_that_have_no_line_of_their_own()
    local rest = "name = 'm', h = 8, tau = 6, score = 'gelu'"
    refuses_source(
        "local m = { " .. rest .. ", projection = { kind = 'dense' } }\nm.d = 0\nreturn m",
        ": d = 0: must be an integer from 1 to 65536"
    )
    refuses_source(
        "local p = { kind = 'fft' }\nreturn { " .. rest .. ", d = 64,\nprojection = p,\nnorm = { kind = 1 } }",
        ':3: projection.kind = "fft": must be "bh4" or "dense"'
    )
    refuses_source(
        "return {\n" .. rest .. ", ['d'] = 0, projection = {} }",
        ":2: d = 0: must be an integer from 1 to 65536"
    )
end

function test.huge_sources_are_refused_quickly()
    refuses_source(
        "return { " .. ("-- return { d = 1\n"):rep(50000) .. " name = 5 }",
        ":50001: name = 5: " .. require("gen.schema.names").rule
    )
end

function test.what_the_sandbox_refuses()
    refuses_source("return {\n d = 64\n h = 8 }", ":3: '}' expected (to close '{' at line 1) near 'h'")
    refuses_source("return 5", ": must return one table, returned number")
    check.fails_with("none.lua: No such file or directory", model.load, "none.lua")
end

function test.what_a_beginner_forgets()
    refuses_source("-- mine\n{\n name = 5 }", ":2: must begin with return {")
    local folder = process.temporary_directory()
    assert(host.write_file(folder .. "/own.lua", "return 5"))
    local hint = "; did you mean " .. folder .. "/own.lua?"
    check.fails_with(folder .. "/own: No such file or directory" .. hint, model.load, folder .. "/own")
    assert(host.write_directory(folder .. "/own", {})) -- that of a bundle
    check.fails_with(folder .. "/own: Is a directory" .. hint, model.load, folder .. "/own")
    check.fails_with(folder .. "/own.lua: must return one table", model.load, folder .. "/own.lua")
end

function test.the_help_lists_every_key()
    local text = table.concat(model.describe(), "\n")
    for key in
        ("name d d_out h tau projection projection.kind projection.block projection.decay score scale norm norm.kind \z
            norm.eps neighbours budget"):gmatch("%S+")
    do
        check.matches("\n" .. text, "\n  " .. key:gsub("%p", "%%%0") .. " ")
    end
    check.matches(text, "must be an integer from 1 to 16")
end

return test
