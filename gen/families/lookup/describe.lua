-- What `lookupc plan` and `lookupc pack` tell people about a LookupFFN, in any arithmetic.
local figures = require "gen.plan.figures"

local describe = {}

-- The shape and the bytes of plan `p` as lines; a family adds its own.
local function common(p, add)
    local s, m = p.shape, p.model
    add(
        m.name,
        string.format(
            "d %d, d_out %d, %s of 2^%d rows%s, %s score%s",
            s.d,
            s.d_out,
            figures.plural(s.h, "table"),
            s.tau,
            s.neighbours > 1 and ", " .. s.neighbours .. " taken of each" or "",
            m.score,
            m.norm and ", layernorm" or ""
        )
    )
    local projection = s.kind == "bh4"
            and string.format(
                "bh4, %s of 4 stages, blocks of %d, %d padded",
                figures.plural(s.repeats, "repeat"),
                s.block,
                s.padded
            )
        or "dense"
    add("projection", string.format("%s, %s of %s", projection, figures.bytes(p.projection_bytes), p.projection.name))
    add(
        "MFLOP per token",
        string.format(
            "%.2f by the paper's formula, %.2f after folding; dense FFN %.2f",
            p.mflop.lookup,
            p.mflop.folded,
            p.mflop.dense
        )
    )
    add("tables", figures.bytes(p.table_bytes) .. " of " .. p.tables.name)
    add("packed weights", figures.bytes(p.packed_bytes))
    if p.scratch_bytes_one then add("scratch, one token", figures.bytes(p.scratch_bytes_one)) end
    add("scratch", figures.bytes(p.scratch_bytes) .. " with " .. figures.sets(p))
end

-- The lines, with those that `more(p, add, options)` adds.
function describe.with(more)
    return function(_, make, options)
        local p, lines = make(), {}
        local function add(name, text) lines[#lines + 1] = string.format("%-18s %s", name, text) end
        common(p, add)
        more(p, add, options)
        return lines
    end
end

describe.lines = describe.with(function(p, add, options)
    for _, v in ipairs(options.schedules and p.variants or {}) do
        add("schedule " .. v.isa.name, v.schedule_text)
    end
end)

function describe.packed_text(p, errors)
    return string.format(
        "projection in %s, relative error %.2g, tables in %s, relative error %.2g",
        p.projection.name,
        errors.projection,
        p.tables.name,
        errors.tables
    )
end

-- Plan `p` as the stable JSON object of `plan --json`, with the fields of `more`.
function describe.summary(p, more)
    local sections, s = {}, p.shape
    for i, section in ipairs(p.sections) do
        sections[i] = { name = section.name, type = section.type, elements = section.elements, offset = section.at }
    end
    local summary = {
        model = p.model,
        digest = p.digest,
        d = s.d,
        d_out = s.d_out,
        h = s.h,
        tau = s.tau,
        block = s.block,
        padded = s.padded,
        repeats = s.repeats,
        mflop_per_token = p.mflop.lookup,
        mflop_per_token_folded = p.mflop.folded,
        dense_mflop_per_token = p.mflop.dense,
        projection = s.projection.name,
        projection_bytes = p.projection_bytes,
        tables = s.tables.name,
        table_bytes = p.table_bytes,
        packed_bytes = p.packed_bytes,
        scratch_bytes = p.scratch_bytes,
        scratch_bytes_one = p.scratch_bytes_one,
        sections = sections,
    }
    for key, value in pairs(more) do
        summary[key] = value
    end
    return summary
end

return describe
