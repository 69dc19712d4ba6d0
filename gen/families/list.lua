-- The list of families: one record a kind of model, of the family `model` one for blocks alone and one for whole
-- models. Everything that differs between them stands in their records, or in those of harness/families/list.lua;
-- nothing else asks which family a model is of.
--
-- A record has
--   name, noun        of p.family; what messages call such a model
--   model             keys and rules of its model files; model.claims(given): whether a file is one
--   options           the options that not all families take
--   excluded(options) those of them that do not go with another one, as a set, and the other one; nil: all go together
--   types             those of them that name types; tuned files record them
--   space             its schedules (gen/plan/space.lua), nil: it has one
--   build(m, isas, options, wanted)   the plan of model `m`; `wanted`: choices by name of the instruction set;
--                     options.firmware: a row of gen/plan/target.lua. p.options is what a manifest records: enough to
--                     build the plan again; p.exact: no kernel has floats, results are the same on every CPU;
--                     p.pack_options: options of `lookupc pack`, as headers say them, nil: none
--   isa_types(options, m)   the types that instruction sets may need more for (isa.with_types); without a model of f32
--   firmware          what gen/emit/firmware.lua asks, nil: it has no firmware:
--     isa(target, options)   the name of its instruction set
--     without_fpu     values of options that are the default where the target has no FPU, nil: none
--     noun, word, about(p)   what papers call such a model, its name in macros of build systems, and its shape in words
--     templates       folder of usage.h and calls.c, which header and source include, selftest.h, selftest.c,
--                     example.c and readme.md
--     takes(p)        the memory that calls work in, as names of arguments
--     calls(p)        the public functions beside those that bind
--     ram(p)          the memory that a caller gives it, a list of { bytes, text }; behind it how much of scratch is in
--                     use at a time, such a list, too
--     work(p)         of a token, from the plan alone: { slow_bytes: that are read of the sections that may lie in
--                     slower memory, lines: { {number, text} } }
--     values(p, vectors)   what templates of the self-test and the example take beside, nil: nothing
--     tolerance(p)    of a result in the self-test, relative to the norm of its row
--   benchmark         what a bundle's own benchmark calls (gen/emit/benchmark.lua), nil: it has none:
--     batches(p), most(p)   tokens a call, unless others are asked for, and the most that can be
--     calls(p)        a list of { name, arguments: C expressions of what the programs call so, status: whether it
--                     returns one, start: what is called before it, nil: nothing; one_by_one: it is called for each of
--                     the tokens, number i; last: it gives the last one's row alone; sequences: that share its tokens,
--                     at most, nil: it takes one; pooled: of which each gives a row }
--     memory(p)       what these work on beside y and scratch: { ids: whether they take ids, not x; memory: "state",
--                     "cache" or nil; width, width_out: macros, of a token's x and of a row of y }
--     rows(p, call, tokens, sequences)   the rows that a call of such a list gives
--     row_bytes(p)    that a token reads of the sections of which it takes rows
--     tolerance(p, tokens)   how far a row may be from that of another instruction set, relative to its norm; behind it
--                     the share of rows that may be farther
--     range(p, name)  least and largest integer of that section where weights are random; nil: draws say what it has
--   print             { api, files }: what its templates print (gen/emit/emit.lua)
--   without_weights   a model is whole without a checkpoint and the same for all instruction sets: nothing is sampled,
--                     and packed from none
--   input, output     C types of x and y, unless its plans say them
--   describe(m, make, options), summary(m, make)   lines and JSON of `lookupc plan`; make() builds the plan
--   packed_text(p, errors)   what `lookupc pack` says of the errors that rounding made
--   calibrations(p)   what `pack --calibrate` tells the packer of each LookupFFN beside the inputs; nil: nothing ever
--   training          what trains its weights, nil: it cannot be trained:
--     add(p)          gives p.training and the field training of its variants, or raises one line
--     header, api(p)  the template of <model>_train.h, and its values
--     files(p, v)     the kernels of <model>_train__<isa>.c, as those of print.files
--   left_out(m, name)   why the model leaves a tensor of a checkpoint out, or what would help; behind it true, if that
--                     explains why others are missing
--   sizes(p)          what <model>_sizes() tells beside what all models have: rows as gen/families/sizes.lua takes them
--   wrapper           name of its part of the packages for other languages, templates/{cpp,python,rust}/NAME.*
--   web(p)            what its page in a browser calls and has to know (gen/emit/web.lua), nil: it has none
local misuse = require "gen.schema.misuse"
local model = require "gen.families.model.family"

local families = {}

families.rows = {
    require "gen.families.lookup.family",
    model.blocks,
    (require "gen.families.tokenizer.family"),
    model.whole,
}

-- The family of that name.
function families.get(name)
    for _, family in ipairs(families.rows) do
        if family.name == name then return family end
    end
    error("no family is called " .. tostring(name))
end

-- The family of the model (validated, or the table of a model file).
function families.of(m)
    for _, family in ipairs(families.rows) do
        if family.model.claims(m) then return family end
    end
end

-- Whether an option says something: not left out, not empty, not its default.
local function says(name, value)
    if name == "threads" then return value and value ~= 1 end
    return value and value ~= "" and not (name == "arithmetic" and value == "float")
end

-- The noun of a family with its article.
function families.with_article(noun) return (noun:find "^[aeiou]" and "an " or "a ") .. noun end
local with_article = families.with_article

-- "is for a transformer or a whole model, not for a tokenizer": the families that do, and `family`, which does not.
function families.not_for(family, does)
    local nouns = {}
    for _, other in ipairs(families.rows) do
        if does(other) then nouns[#nouns + 1] = with_article(other.noun) end
    end
    local last = table.remove(nouns)
    local takers = #nouns > 0 and table.concat(nouns, ", ") .. " or " .. last or last
    return string.format("is for %s, not for %s", takers, with_article(family.noun))
end

-- Whether `family` takes the option --`name` beside the others of `options`.
function families.takes(family, name, options)
    return family.takes_option[name] and not (family.excluded and family.excluded(options)[name])
end

-- Raises one line for an option that `family` does not take, or not beside the others.
function families.check_options(family, options)
    local excluded, because
    if family.excluded then
        excluded, because = family.excluded(options)
    end
    for _, other in ipairs(families.rows) do
        for _, name in ipairs(other.options) do
            local line = not family.takes_option[name]
                    and families.not_for(family, function(row) return row.takes_option[name] end)
                or excluded and excluded[name] and "cannot be given beside " .. because
            if line and says(name, options[name]) then
                misuse(string.format("--%s: %s: %s", name, tostring(options[name]), line))
            end
        end
    end
end

for _, family in ipairs(families.rows) do
    family.takes_option = {}
    for _, name in ipairs(family.options) do
        family.takes_option[name] = true
    end
end

return families
