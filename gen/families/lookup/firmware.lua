-- What firmware of a LookupFFN is, in any arithmetic; gen/families/list.lua says what its fields mean.
local dtype = require "gen.plan.dtype"

local firmware = {
    noun = "LookupFFN layer",
    word = "LAYER",
    without_fpu = { arithmetic = "integer" },
    templates = "templates/lookup/firmware/",
}

-- Kernels of integers are portable C.
function firmware.isa(target, options) return options.arithmetic == "integer" and "scalar" or target.isa end

function firmware.about(p) return string.format("%d inputs, %d outputs", p.shape.d, p.shape.d_out) end

function firmware.takes() return "scratch" end

function firmware.calls(p) return { p.names.ffn } end

function firmware.tolerance() return 1e-5 end

function firmware.ram(p)
    local rows, places = { { bytes = p.weights_struct_bytes, text = "a " .. p.names.weights } }, {}
    for name, at in pairs(p.variants[1].stages[1].scratch) do
        places[#places + 1] = { name = name, at = at }
    end
    table.sort(places, function(a, b) return a.at < b.at end)
    for i, place in ipairs(places) do
        rows[#rows + 1] = {
            bytes = (places[i + 1] and places[i + 1].at or p.scratch_bytes) - place.at,
            text = "scratch: " .. place.name,
        }
    end
    return rows, {}
end

function firmware.work(p)
    local row, slots = dtype.size(p.tables, p.shape.d_out), p.shape.slots
    local operations = math.floor(p.mflop.projection * 1e6 + 2 * slots * p.shape.d_out + 0.5)
    return {
        slow_bytes = slots * row,
        lines = {
            {
                operations,
                string.format(
                    "operations of projection and gather; a dense FFN of %d, %d and %d takes %.0f",
                    p.shape.d,
                    p.dense_hidden,
                    p.shape.d_out,
                    p.mflop.dense * 1e6
                ),
            },
            { slots, string.format("rows of %d bytes of the tables:", row) },
            { slots * row, "bytes read from " .. p.names.macro "TABLE_SECTION" },
            {
                p.projection_bytes,
                "bytes of projection weights read from " .. p.names.macro "WEIGHTS_SECTION",
            },
        },
    }
end

return firmware
