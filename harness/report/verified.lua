-- What verify prints of calls of blocks and of whole models: a line each, or JSON.
local host = require "host"
local json = require "json"

local verified = {}

-- A line each; fused: beside unfused weights, too.
local function print_table(m, results, fused)
    local width = 8
    for _, r in ipairs(results) do
        width = math.max(width, #r.isa)
    end
    local form = "%-" .. width .. "s %-11s %-8s %-6s %-6s %7s %9s %9s"
    local function add(last, ...) host.print(string.format(form, ...) .. (fused and last or "")) end
    local function error_of(value) return string.format("%.1e", value or 0) end
    add(" vs. unfused", m.name, "", "", "type", "cache", "tokens", "rel error", "max error")
    for _, r in ipairs(results) do
        add(
            string.format(" %11s", r.kernel_rel_err and r.rel_err and error_of(r.rel_err) or "-"),
            r.isa,
            r.call,
            r.ok and "ok" or "FAILED",
            r.type,
            r.cache,
            r.tokens,
            error_of(r.kernel_rel_err or r.rel_err),
            error_of(r.max_abs_err)
        )
        if not r.ok then host.note(string.format("lookupc verify: %s %s: %s", r.isa, r.call, r.message)) end
    end
end

-- What rounding makes of rows, and of codes.
local function print_rounding(results)
    local function say(key, what)
        for _, r in ipairs(results) do
            if r[key] then
                return host.print(string.format("rounding %s: relative error of a row up to %.1e", what, r[key]))
            end
        end
    end
    local first, looked = results[1], nil
    if first and first.activations_err then say("activations_err", "activations to " .. first.activations) end
    for _, r in ipairs(results) do
        if r.looked and (not looked or r.looked.flips > looked.flips) then looked = r.looked end
    end
    if looked then
        local counts = "codes other than the reference's for the same inputs: at most %d of %d"
        local explained = "; rounding inputs of projections alone makes %d"
        host.print(
            counts:format(looked.flips, looked.codes)
                .. (looked.flips_explained > 0 and explained:format(looked.flips_explained) or "")
        )
    end
    say("float32_err", "to float32 alone")
    say("cache_err", "the cache alone")
end

-- Prints the results { isa, call, ok, type, cache, tokens, rel_err, max_abs_err, message } of model `m` and the names
-- of instruction sets that were skipped. Where results have kernel_rel_err, that is the kernel's error, and rel_err the
-- one beside unfused weights. activations_err: what rounding the inputs of products to the type `activations` makes of
-- the reference. float32_err, cache_err: what rounding them to float32, and rounding the cache, make of it, where a
-- result is far from the reference. looked: of lookup FFNs that were seen at work
-- (harness/families/model/observed_lookups.lua). costs: what budget.layers says (harness/verify/budget.lua), nil: there
-- is no budget. Returns the exit status.
function verified.print(m, results, skipped, options, costs)
    local ok, fused = not costs or costs.ok, false
    for _, r in ipairs(results) do
        ok, fused = ok and r.ok, fused or r.kernel_rel_err ~= nil
    end
    if options.json then
        host.print(assert(json.encode {
            model = m.name,
            ok = ok,
            threads = options.threads,
            budget = costs and { codes = costs.most },
            layers = costs and json.array(costs.layers),
            seed = options.seed,
            results = json.array(results),
            skipped = json.array(skipped),
        }))
        return ok and 0 or 1
    end
    print_table(m, results, fused)
    print_rounding(results)
    for _, row in ipairs(costs and costs.layers or {}) do
        local share = 100 * row.flips / row.codes
        local text = string.format("layer %d: %d of %d codes flip (%.3g %%)", row.layer, row.flips, row.codes, share)
        host.print(text)
        if not row.ok then
            host.note(string.format("lookupc verify: %s, the budget is %g %%", text, 100 * costs.most))
        end
    end
    for _, name in ipairs(skipped) do
        host.print("skipped: " .. name .. ": this CPU or its operating system does not run it")
    end
    return ok and 0 or 1
end

return verified
