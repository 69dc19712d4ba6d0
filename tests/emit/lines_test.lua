-- No line of an emitted file is longer than 120 columns, no loop has one turn at most, and nothing is "1 rows", over a
-- few models, types and profiles; nothing is multiplied by 1 where heads and rows have one element. A word in backticks
-- of a function's comment stands in the function. A file defines each type once.
local check = require "tests.support.check"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local process = require "process"
local program = require "tests.support.program"
local rules = require "tests.support.rules"

local columns = 120
local test = {}

local function model(name) return "gen/models/" .. name .. ".lua" end

-- The model file `name` of a test, which holds `text`.
local function written(name, text)
    local path = program.folder() .. "/" .. name .. ".lua"
    assert(host.write_file(path, "return { name = \"" .. name .. "\", " .. text .. " }\n"))
    return path
end

-- Numbers that `text` gives a name, added to `numbers`.
local function read_names(text, numbers)
    for name, value in text:gmatch "#define ([%u%d_]+) (%d+)%f[%s]" do
        numbers[name] = value
    end
end

-- The functions of a C file: { name, comment: what stands before it, or "", text: parameters and body, body }.
local function functions(text)
    local list, comment = {}, ""
    for line, place in text:gmatch "([^\n]*)\n()" do
        local name = line:find "^[%a_]" and not line:find "^typedef" and line:match "([%w_]+)%("
        if name then
            local parameters, body = text:match("^([^;{]-%))\n({.-\n})\n", place - #line - 1)
            if body then
                list[#list + 1] = { name = name, comment = comment, text = parameters .. body, body = body }
            end
            comment = ""
        elseif line:find "^/%*" then
            comment = text:match("^/%*.-%*/", place - #line - 1) or ""
        elseif line == "" then
            comment = ""
        end
    end
    return list
end

-- What is wrong with the functions of a file: a word in backticks that a function's comment says, but neither it nor a
-- shape there, or a norm that stands there twice.
local function wrong_functions(text)
    local list, bodies = {}, {}
    for _, one in ipairs(functions(text)) do
        local known = " " .. one.text
        for shape in one.comment:gmatch "%b[]" do
            known = known .. shape
        end
        for word in one.comment:gmatch "`([%a_][%w_]*)`" do
            if not known:find("[^%w_]" .. word .. "%f[^%w_]") then
                list[#list + 1] = one.name .. ": its comment says " .. word
            end
        end
        if one.name:find "norm" then
            if bodies[one.body] then list[#list + 1] = one.name .. " is " .. bodies[one.body] end
            bodies[one.body] = one.name
        end
    end
    return list
end

-- The types that a file defines twice, where the preprocessor chooses between none of them.
local function types_again(text)
    local list, seen = {}, {}
    for line in text:gmatch "[^\n]+" do
        local name = line:match "^} ([%w_]+);" or line:match "^typedef [^{]-([%w_]+);"
        if name and seen[name] then list[#list + 1] = name .. " is defined twice" end
        if name then seen[name] = true end
        if line:find "^#el" then seen = {} end
    end
    return list
end

-- The lines of C of a bundle that `wrong` gives a message for; wrong(line, numbers) with the numbers that have names.
local function offences(folder, wrong)
    local list, numbers, texts = {}, {}, {}
    for _, file in ipairs(json.decode(assert(host.read(folder .. "/MANIFEST.json"))).files) do
        if file.name:find "%.[ch]$" then
            local text = host.read(folder .. "/" .. file.name)
            texts[#texts + 1] = { name = file.name, text = text }
            read_names(text, numbers)
        end
    end
    for _, file in ipairs(texts) do
        for _, messages in ipairs { wrong_functions(file.text), types_again(file.text) } do
            for _, message in ipairs(messages) do
                list[#list + 1] = file.name .. ": " .. message
            end
        end
        local number = 0
        for line in file.text:gmatch "([^\n]*)\n" do
            number = number + 1
            local message = wrong(line, numbers)
            if message then
                list[#list + 1] = string.format("%s:%d: %s: %s", file.name, number, message, line:sub(1, 100))
            end
        end
    end
    return list
end

-- What comments count.
local counted = {}
for noun in
    ([[bits blocks columns elements floats folds groups heads inputs layers outputs panels repeats rows tables tiles
words]]):gmatch "%a+"
do
    counted[noun] = true
end

-- Of blocks and whole models: what is multiplied by 1.
local function times_one(line)
    return (line:find "[%w%])] %* 1%f[^%w.]" or line:find "%f[%w._]1 %* [%w(]") and "times 1" or nil
end

local function offence(line, numbers)
    local length = utf8.len(line)
    if length > columns then return length .. " columns" end
    if line:find "%s$" then return "a blank at the end" end
    if line:find "^%s*[%w_]+%b(); +[%w_]+%b();" then return "two statements" end
    if rules.one_turn(line, numbers) then return "a loop of one turn" end
    local noun = (" " .. line):match "[^%w.]1 (%l+s)%f[^%w_]"
    if noun and counted[noun] then return "1 " .. noun end
end

local bundles = {} -- names of bundles, and by them their tests

-- Adds the test of the bundle that these words emit: `wrong` as of offences, nil: all of the above.
local function add(name, words, wrong)
    name = "lines_of_" .. name
    bundles[#bundles + 1] = name
    bundles[name] = function()
        local folder = program.folder()
        words[#words + 1], words[#words + 2] = "-o", folder
        program.works(words)
        local list = offences(folder, wrong or offence)
        if #list > 0 then
            error(#list .. " lines\n" .. table.concat(list, "\n", 1, math.min(#list, 5)), 0)
        end
    end
end

function test.comments_that_say_what_is_not_there_are_seen()
    local function wrong(text) return table.concat(wrong_functions(text), "; ") end
    local body = "{\n    f();\n    g();\n    f();\n    g();\n    f();\n    g();\n    return x;\n}\n"
    local good = "/* Of `x`. */\nstatic int m_norm(int x)\n" .. body
    check.equal(wrong(good), "")
    check.equal(wrong((good:gsub("`x`", "`position`"))), "m_norm: its comment says position")
    check.equal(wrong(good .. "\nstatic int m_norm_too(int x)\n" .. body), "m_norm_too is m_norm")
end

for _, name in ipairs { "tiny", "roberta_small", "roberta_base" } do
    for _, tables in ipairs { "f32", "bf16", "i8", "e4m3" } do
        add(name .. "_" .. tables, { "emit", model(name), "--tables", tables })
    end
    add(name .. "_projection_bf16", { "emit", model(name), "--projection", "bf16" })
end
add("tiny_single_file", { "emit", model "tiny", "--single-file" })
add("tiny_single_file_i8", { "emit", model "tiny", "--single-file", "--tables", "i8", "--isa", "scalar,sse4,avx2" })
-- The last layer gathers fewer columns than the others.
add("tables_that_deliver_q_k_and_v", {
    "emit",
    written("tables", [[d = 40, heads = 4, layers = 2, vocab = 9, attention = { eliminate = "QKVP", context = 70 },
        ffn = { kind = "lookup", h = 9, tau = 4, projection = { kind = "dense" } }]]),
    "--type",
    "i8",
})
for _, name in ipairs { "tiny_skipless", "lookup_skipless", "mistral_7b_skipless" } do
    add(name, { "emit", model(name) })
    add(name .. "_i8", { "emit", model(name), "--type", "i8", "--cache", "i8" })
end
add("kws_integer", { "emit", model "kws", "--arithmetic", "integer", "--isa", "scalar" })
add("two_rows_integer", { "emit", "tests/firmware/two_rows.lua", "--arithmetic", "integer", "--isa", "scalar" })

-- Whole models, whose names are in many lines.
add(
    "a_long_name",
    { "emit", written("sorter_of_few_digits", [[d = 48, heads = 3, layers = 3, vocab = 3, positions = 11, skip = true,
        norm = { kind = "layernorm", eps = 1e-5 }, attention = { context = 11 },
        ffn = { kind = "mlp", f = 192, activation = "gelu_tanh" }, embedding = {},
        output = { norm = { kind = "layernorm", eps = 1e-5 }, head = {} }, checkpoint = "mingpt"]]) }
)
for _, name in ipairs { "roberta_small_whole", "sentence_encoder" } do
    add(name, { "emit", model(name) })
end

-- Of a model's training: pitches have names, and one function knows where all rows of a block lie.
function test.training_names_pitches_and_takes_rows()
    local folder, pitches, bodies = program.folder(), {}, {}
    program.works { "emit", model "gpt_nano_sort", "--training", "--isa", "scalar", "-o", folder }
    local text = assert(host.read(folder .. "/gpt_nano_sort_train__scalar.c"))
    for width, pitch in text:gmatch "#define GPT_NANO_SORT_TRAIN_PITCH_(%d+) (%d+)" do
        pitches[pitch] = width
    end
    check.equal(next(pitches) ~= nil, true)
    for _, one in ipairs(functions(text)) do
        bodies[one.name] = one.body
    end
    local count = 0
    for step in bodies.gpt_nano_sort_train_blocks_values_at:gmatch "_next_rows%(r, &at, ([%w_]+), first" do
        count = count + 1
        check.equal(pitches[step], nil)
    end
    check.equal(count > 10, true)
    for _, word in ipairs { "forward", "back_rows", "weight_gradients" } do
        local body = bodies["gpt_nano_sort_train_" .. word .. "_blocks"]
        check.equal({ body:find "gpt_nano_sort_rows ", body:find "_AT" }, {})
    end
end

-- However short a model's context is, rows of tables come into cache once for many tokens; `check` knows that.
function test.training_gathers_many_sequences_at_once()
    local folder = program.folder()
    local path = written("gathers", [[d = 256, heads = 4, layers = 1, vocab = 9,
        attention = { context = 32, rope = {} }, embedding = {}, output = { head = {} }, checkpoint = "mingpt",
        ffn = { kind = "lookup", h = 64, tau = 8, projection = { kind = "bh4", block = 16 }, score = "gelu",
            neighbours = 2 }]])
    program.works { "emit", path, "--training", "--isa", "avx2", "-o", folder }
    local text = assert(host.read(folder .. "/gathers_train__avx2.c"))
    check.equal(text:match "first < end; first %+= (%d+)", "2048")
    program.works { "check", folder }
end

-- Blocks share tokens among threads, not the LookupFFNs in them, whose function that would do it does not exist.
function test.layers_of_blocks_share_nothing_among_threads()
    local folder = program.folder()
    program.works { "emit", model "roberta_small_whole", "--isa", "avx2", "-o", folder }
    local text = assert(host.read(folder .. "/roberta_small_whole__avx2.c"))
    check.equal(text:find "ROBERTA_SMALL_WHOLE_OPENMP" ~= nil, true)
    check.equal(text:find "lookup_split%(", nil)
end

add("gpt_nano_sort_training", { "emit", model "gpt_nano_sort", "--training" })

-- Small and odd shapes, in which loops end before they begin.
local bh4 = 'projection = { kind = "bh4", block = 16 }, score = "gelu"'
local sets = "scalar,sse4,avx2,avx_vnni,avx512,neon,sve"
for name, text in pairs {
    one_table = "d = 12, d_out = 7, h = 1, tau = 3, " .. bh4,
    one_input = 'd = 1, h = 1, tau = 1, projection = { kind = "dense" }, score = "gelu"',
    few_inputs = 'd = 5, d_out = 3, h = 3, tau = 2, projection = { kind = "dense" }, score = "gelu"',
    many_blocks = 'd = 20, d_out = 33, h = 5, tau = 4, projection = { kind = "bh4", block = 4 }, score = "softmax"',
    many_stages = "d = 64, h = 8, tau = 6, " .. bh4,
} do
    local path = written(name, text)
    add(name, { "emit", path, "--isa", sets })
    add(name .. "_i8", { "emit", path, "--tables", "i8", "--projection", "i8", "--isa", sets .. ",dotprod" })
    add(name .. "_integer", { "emit", path, "--arithmetic", "integer", "--isa", "scalar" })
    if name ~= "one_input" and name ~= "many_blocks" then
        add(name .. "_training", { "emit", path, "--training" })
    end
end
local rope = "attention = { context = 16, rope = { theta = 10000 } }"
for name, text in pairs {
    one_head = "d = 6, heads = 1, layers = 1, " .. rope .. ', ffn = { kind = "glu", f = 10, activation = "silu" }',
    one_group = "d = 16, heads = 2, kv_heads = 1, layers = 2, "
        .. rope
        .. ', ffn = { kind = "lookup", h = 4, tau = 3, projection = { kind = "dense" }, score = "gelu" }',
    one_layer = "d = 20, heads = 2, layers = 1, "
        .. rope
        .. ', ffn = { kind = "lookup", h = 3, tau = 3, '
        .. bh4
        .. " }",
} do
    local path = written(name, "vocab = 8, " .. text)
    add(name, { "emit", path, "--isa", sets })
    for _, kind in ipairs { "i8", "bf16" } do
        local types = { "--type", kind, "--cache", kind, "--activations", kind }
        add(name .. "_" .. kind, { "emit", path, table.unpack(types) })
    end
end

-- Heads, and rows of a whole model, of one element.
for name, text in pairs {
    heads_of_one_element = "heads = 4, kv_heads = 2, d = 4, attention = { context = 40, window = 2 }",
    rows_of_one_element = 'heads = 1, d = 1, attention = { causal = false, context = 40 }, positions = 40, \z
        embedding = {}, output = { pool = "last", unit = true }, checkpoint = "gpt2"',
} do
    local path = written(name, text .. ', layers = 1, vocab = 2, ffn = { kind = "mlp", f = 6, activation = "relu" }')
    add(name, { "emit", path, "--isa", "scalar,avx2" }, times_one)
    add(name .. "_i8", { "emit", path, "--type", "i8", "--cache", "i8", "--activations", "i8" }, times_one)
end

-- Firmware for this machine, whose compiler is there.
for _, arithmetic in ipairs { "float", "integer" } do
    local weights = program.folder() .. "/kws.safetensors"
    program.works { "sample", model "kws", "-o", weights }
    local words = { "emit", model "kws", "--profile", "firmware", "--target", "generic", "--without-misra" }
    for _, word in ipairs { "--arithmetic", arithmetic, "--weights", weights } do
        words[#words + 1] = word
    end
    add("kws_firmware_" .. arithmetic, words)
end

table.sort(bundles)
local one = process.variable "LOOKUPC_TEST" -- it may be a bundle that quick leaves out
for _, name in ipairs(one and bundles or effort.some("bundled", bundles, #bundles // 2)) do
    test[name] = bundles[name]
end

return test
