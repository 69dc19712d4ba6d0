-- Results that were kept: files of what bench --json prints, checked key by key.
local files_read = require "gen.host.files_read"
local host = require "host"
local json = require "json"
local schema = require "gen.schema.schema"

local results = {}

local largest = 1 << 24 -- bytes

local function rule(words, holds) return { words = words, holds = holds } end
local text = rule("must be text on a line", function(v) return type(v) == "string" and not v:find "%c" end)
local day = rule('must be a day such as "2026-11-27"', function(v)
    return type(v) == "string" and v:find "^%d%d%d%d%-%d%d%-%d%d$" ~= nil
end)
local count = schema.integer(0, 1 << 53)
local number = schema.number("must be a number", function(v) return v == v and math.abs(v) < math.huge end)
local list = rule(
    "must be a list",
    function(v) return type(v) == "table" and (v[1] ~= nil or next(v) == nil) end
)

-- Rows of a schema (gen/schema/schema.lua) behind those of `more`: names of counts, numbers and texts, those with !
-- required.
local function rows(counts, numbers, texts, more)
    local all = more or {}
    for _, of in ipairs { { count, counts }, { number, numbers }, { text, texts } } do
        for name, needed in of[2]:gmatch "([%w_]+)(!?)" do
            all[#all + 1] = { key = name, rule = of[1], optional = needed == "" }
        end
    end
    return all
end

local function part(name, keys) return { key = name, rule = schema.table(name, keys), optional = true } end
local function list_of(name, keys) return { key = name, rule = list, optional = true, each = keys } end

local rival = rows("", "us_per_token speedup rel_err", "library type implementation")
local function beside(more)
    for _, row in ipairs { part("same_type_rival", rival), list_of("rivals", rival) } do
        more[#more + 1] = row
    end
    more[#more + 1] = { key = "counts", rule = schema.boolean }
    return more
end

-- What results of each kind may hold. They are of the first kind whose `key` the first of them has.
local kinds = {
    {
        name = "whole",
        key = "us_per_sequence",
        results = rows(
            "tokens! sequences! position threads",
            "us_per_sequence! us_per_token! body_us_per_sequence! stages_share! speedup body_speedup again_ratio \z
                cpu_over_wall rel_err!",
            "model! isa! type! cache activations tables projection tuned call!",
            {
                part("stages", rows("", "embedding! products! attention! ffn! head!", "")),
                part("dense", rows("", "us_per_sequence! body_us_per_sequence! ffn! rel_err", "")),
                part(
                    "exact",
                    rows(
                        "",
                        "us_per_sequence! body_us_per_sequence! attention! rel_err! speedup! body_speedup! \z
                            attention_speedup!",
                        ""
                    )
                ),
                { key = "counts", rule = schema.boolean },
            }
        ),
    },
    {
        name = "transformer",
        key = "tokens",
        results = rows(
            "tokens! position layers threads",
            "us_per_token unfused_us_per_token speedup predicted_speedup speedup_share exact_us_per_token \z
                exact_speedup gbytes read_gbytes read_share gflops products_us_per_token products_gflops again_ratio \z
                cpu_over_wall rel_err unfused_rel_err exact_rel_err",
            "model! isa! type! activations tables projection tuned same_type",
            beside { part("f32_rival", rival) }
        ),
    },
    {
        name = "lookup",
        key = "batch",
        results = rows(
            "batch! threads code_flips",
            "us_per_token! same_type_speedup dense_us_per_token dense_rel_err speedup gflops project_gflops limit_us \z
                limit_share random_rows_gbytes gather_gbytes again_ratio cpu_over_wall rel_err max_abs_err",
            "model! isa! regime schedule table_dtype! projection_dtype! arithmetic tuned same_type dense_library \z
                dense_implementation",
            beside {
                part("stages", rows("", "project! gather!", "")),
                part("flop_per_byte", rows("", "project! gather!", "")),
            }
        ),
    },
}

local attention = rows(
    "tokens! position layers threads",
    "us_per_token! gbytes read_gbytes read_share gflops exact_us_per_token exact_speedup baseline_us_per_token \z
        speedup cpu_over_wall",
    "model! isa! type! baseline_library baseline_implementation",
    { { key = "counts", rule = schema.boolean } }
)

local host_keys = rows(
    "l1d l2 l3",
    "",
    "cpu! compiler! flags! openblas onednn onednn_bf16 onednn_i8 machine",
    { { key = "date", rule = day }, { key = "isa", rule = list, optional = true } }
)

-- The limits of a core; of random rows each result has that of its tables.
results.limits = {
    { key = "fma_gflops", name = "FMA", unit = "GFLOP/s" },
    { key = "l1_gbytes", name = "L1", unit = "GB/s" },
    { key = "l2_gbytes", name = "L2", unit = "GB/s" },
    { key = "l3_gbytes", name = "L3", unit = "GB/s" },
    { key = "memory_gbytes", name = "memory", unit = "GB/s" },
    { key = "random_rows_gbytes", name = "random rows", unit = "GB/s", of_tables = true },
}
local limit_keys = {}
for i, limit in ipairs(results.limits) do
    limit_keys[i] = limit.key
end

-- What bench prints of a model. `converted`: from what page the file was made that has it.
local object = rows("", "", "converted", {
    { key = "host", rule = schema.table("host", host_keys) },
    part("limits", rows("", table.concat(limit_keys, " "), "")),
    { key = "results", rule = list },
    list_of("attention", attention),
})

local function behind(chain, ...)
    return table.move({ ... }, 1, select("#", ...), #chain + 1, { table.unpack(chain) })
end

local function valid(context, keys, given, chain)
    if type(given) ~= "table" then schema.refuse(context, chain, given, "must be an object") end
    local own = schema.validate(context, keys, given, chain)
    for _, row in ipairs(keys) do
        for i, one in ipairs(row.each and own[row.key] or {}) do
            own[row.key][i] = valid(context, row.each, one, behind(chain, row.key, tostring(i)))
        end
    end
    return own
end

local function kind_of(first)
    for _, kind in ipairs(kinds) do
        if type(first) == "table" and first[kind.key] ~= nil then return kind end
    end
end

-- Adds the objects of `given`, at the key chain `chain`, to `all`: one model's, the list `models`, or a list of either.
local function add(all, context, given, chain)
    local models = type(given) == "table" and given.models
    if models then
        valid(context, { { key = "models", rule = list } }, given, chain)
        chain = behind(chain, "models")
    end
    for i, one in ipairs(models or list.holds(given) and given or {}) do
        add(all, context, one, behind(chain, tostring(i)))
    end
    if models or list.holds(given) then return end
    local own = valid(context, object, given, chain)
    local kind = kind_of(own.results[1])
    if not kind then
        schema.refuse(context, behind(chain, "results"), nil, "must be results of bench, which the first one is not")
    end
    for i, one in ipairs(own.results) do
        own.results[i] = valid(context, kind.results, one, behind(chain, "results", tostring(i)))
    end
    own.kind = kind.name
    all[#all + 1] = own
end

-- The objects of the file `path`, each with its `kind`: "lookup", "transformer" or "whole"; raises one line for what
-- bench does not print.
function results.read(path)
    local given, message = json.decode(assert(host.read(files_read.note(path), largest)))
    if message then error(path .. ":" .. message, 0) end
    local all = {}
    if type(given) ~= "table" or next(given) == nil then error(path .. ": must be what bench --json prints", 0) end
    add(all, { path = path, source = "" }, given, {})
    return all
end

return results
