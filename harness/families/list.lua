-- What the harness knows of each family (gen/families/list.lua): how its kernels are run, verified, timed and tuned.
--
-- A record has
--   name                   of the family
--   run(path, options)     computes options.output and returns what that is, in words
--   verify(path, options)   the command; returns the exit status
--   bench(path, options)   verifies and times the model in calls of options.batches, by options.callers at a time where
--                          emitted code knows no threads; returns the report
--                          (harness/report/bench_report.lua), nil: the measuring process failed and has said why
--   lookup_inputs(path, options)   what its LookupFFNs read in float32 of the inputs of pack --calibrate: paths of .npy
--                          files; nil: the inputs themselves
--   not_in_checkpoints     keys of model files that results depend on and a checkpoint does not have
--   run_option             of run: what the model is applied to, "ids"; nil: "input"
--   tokenize(path, texts, options)   the command, nil: such a model takes no text
--   text                   the commands embed, similar, generate (path, texts, options) and perplexity (path, options)
--                          by name, nil: such a model has none of them
--   bench_batches(m, options)   tokens a call that bench times, unless --batch says others
--   tuning                 what harness/tune asks of a family, nil: it has no schedules to tune:
--     batches(m)           tokens a call unless others are asked for
--     check_batches(m, batches)   raises one line for those that cannot be timed
--     types(options)       the names of the two types that a measurement depends on
--     types_text           how lines for people say them
--     sample(m, p, caches, options)   a model that takes the same time a layer as `m` and less to prepare; where
--                          weights are given `m` itself. Behind it its family and its options, if they are others
--     count(m)             blocks of the model, nil: m.layers
--     check_weights(p, options)   raises the line that `prepare` would raise for a wrong checkpoint in options.weights
--     prepare(p, directory, options)   packed weights, path in `output`, and what `failure` wants
--     failures(list, regime, o, options)   why each of the compiled candidates is wrong, or false or nil. options:
--                          left, the seconds for each, nil: as many as it takes; quick: a few tokens will do
--     conditions           of the repetitions (harness/tune/round.lua)
--     job(t, runners, batches, count, repetitions, order_seed, seconds_a_sample)   of the measuring process
--     rivals               the dense FFNs that run beside it (harness/measure/rivals.lua)
--     combinations(options)   of types and tuned files that bench times on a device; nil or false: `bench` does it
--     estimate             cycles(...) of a schedule
--     rules                why a schedule is not worth measuring (harness/tune/candidates.lua)
--     integer_sums(p, v)      words of the integer gather, or false
--   firmware               what harness/firmware/build.lua asks, nil: there is none:
--     smaller(p)           what may be tried where it does not fit: { options: { types by option }, the smallest last,
--                          schedules: texts of those that take less stack }
--     fewer                { most(m), with(m, n), text }: what a model can have fewer of, and how lines say it; nil
--     vectors(p, files, seed)   inputs of the self-test and what the reference makes of them, as its template
--                          wants them
--     stand_ins(p)         as many numbers in their place, for measuring
local lazy = require "gen.host.lazy"

local families = {}

local rows = {
    lookup = lazy "harness.families.lookup.family",
    transformer = lazy(function() return require("harness.families.model.family").transformer end),
    tokenizer = lazy "harness.families.tokenizer.family",
    whole = lazy(function() return require("harness.families.model.family").whole end),
}

-- The record of the family of that name.
function families.get(name) return rows[name] or error("the harness knows no family " .. tostring(name)) end

return families
