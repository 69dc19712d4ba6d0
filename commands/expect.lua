-- run --expect: compares what a model makes of its input with what a framework makes of it.
local host = require "host"
local misuse = require "gen.schema.misuse"
local npy = require "npy"

local expect = {}

-- The largest relative error of a row that is accepted; nil without --expect. Raises one line.
function expect.tolerance(options)
    if not options.expect then return nil end
    local tolerance = tonumber(options.tolerance or "1e-5")
    if not tolerance or not (tolerance >= 0 and tolerance < math.huge) then
        misuse("--tolerance: " .. options.tolerance .. ": must be a number not below 0")
    end
    return tolerance
end

-- Raises one line if options.expect is not a matrix of the result's shape.
function expect.check(options, rows, columns)
    if options.expect then assert(npy.check(options.expect, rows, columns)) end
end

-- The value of the key `name`, such as norm.eps, in model `m`; nil: the model does not say it.
local function value_of(m, name)
    local value = m
    for key in name:gmatch "[^.]+" do
        value = type(value) == "table" and value[key]
        if not value then return nil end
    end
    return value
end

-- What the checkpoint cannot say, as the model file says it: "score = gelu, norm.eps = 1e-05".
local function said(m, not_in_checkpoints, options)
    local list = {}
    for _, name in ipairs(not_in_checkpoints) do
        local value = value_of(m, name)
        if value ~= nil and type(value) ~= "table" then
            list[#list + 1] = string.format(type(value) == "number" and "%s = %.9g" or "%s = %s", name, value)
        end
    end
    if (value_of(m, "projection.kind") or value_of(m, "ffn.projection.kind")) == "bh4" then
        list[#list + 1] = options["blocks-in-out"] and "blocks stored [b in][b out] (--blocks-in-out)"
            or "blocks stored [b out][b in] (no --blocks-in-out)"
    end
    return table.concat(list, ", ")
end

-- Compares the file `path`, results of model `m`, with options.expect. Returns the exit status.
function expect.compare(path, m, not_in_checkpoints, tolerance, options)
    local d = assert(npy.compare(path, options.expect))
    host.print(
        string.format(
            "relative error %.2g in row %d of %d; "
                .. "largest difference %.2g in row %d, column %d of %d: %.9g, expected %.9g",
            d.relative,
            d.row,
            d.rows,
            d.difference,
            d.difference_row,
            d.difference_column,
            d.columns,
            d.value,
            d.expected
        )
    )
    if d.relative <= tolerance then return 0 end
    local words = said(m, not_in_checkpoints, options)
    host.note(
        string.format(
            "lookupc: --tolerance: %g: the relative error of row %d is %.2g%s",
            tolerance,
            d.row,
            d.relative,
            words ~= "" and "; a checkpoint does not say these: " .. words or ""
        )
    )
    return 1
end

return expect
