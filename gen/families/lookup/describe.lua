-- What `lookupc plan` and `lookupc pack` tell people about a LookupFFN, in any arithmetic.
local figures = require "gen.plan.figures"

local describe = {}

-- The lines of the plan that make() builds.
function describe.lines(_, make, options)
    local p, lines = make(), {}
    local function add(name, text) lines[#lines + 1] = string.format("%-18s %s", name, text) end
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
    if p.multiplied then
        add("multiplied out", string.format("%s of %s", figures.bytes(p.multiplied.bytes), p.projection.name))
    end
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
    if p.exact then
        add("integers", string.format("x int16 in units of %g, y int32 in units of 2^-%d", p.unit, p.fraction))
    end
    for _, v in ipairs(options.schedules and p.variants or {}) do
        if v.schedule_text then add("schedule " .. v.isa.name, v.schedule_text) end
    end
    return lines
end

function describe.packed_text(p, errors)
    return string.format(
        "projection in %s, relative error %.2g%s, tables in %s, relative error %.2g",
        p.projection.name,
        errors.projection,
        p.multiplied and string.format(", multiplied out %.2g", errors.dense_projection) or "",
        p.tables.name,
        errors.tables
    )
end

-- The plan that make() builds as the stable JSON object of `plan --json`.
function describe.summary(_, make)
    local p, sections, variants = make(), {}, {}
    local s = p.shape
    for i, section in ipairs(p.sections) do
        sections[i] = { name = section.name, type = section.type, elements = section.elements, offset = section.at }
    end
    for i, v in ipairs(p.variants) do
        variants[i] = {
            isa = v.isa.name,
            schedule = v.schedule_text,
            tile = v.stages[1].tile,
            chunk = v.stages[1].chunk,
            scratch_bytes = v.scratch_bytes,
        }
    end
    return {
        arithmetic = p.options.arithmetic,
        x_scale = p.unit,
        y_scale = p.fraction and 2.0 ^ -p.fraction,
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
        multiplied_out_bytes = p.multiplied and p.multiplied.bytes,
        tables = s.tables.name,
        table_bytes = p.table_bytes,
        packed_bytes = p.packed_bytes,
        scratch_bytes = p.scratch_bytes,
        scratch_bytes_one = p.scratch_bytes_one,
        sections = sections,
        variants = variants,
    }
end

return describe
