-- What AVX2 and AVX-512 have in common: both speak of _mmN_operation_ps.

local function at(base, offset)
    if offset == 0 then return base end
    return base .. " + " .. offset
end

-- The words of the width `bits`.
return function(bits)
    local prefix = "_mm" .. bits .. "_"
    local function call(name, ...) return prefix .. name .. "(" .. table.concat({ ... }, ", ") .. ")" end
    return {
        at = at,
        call = call,
        includes = { "<immintrin.h>" },
        zero = function() return call("setzero_ps") end,
        broadcast = function(s) return call("set1_ps", s) end,
        load = function(base, offset) return call("load_ps", at(base, offset)) end,
        load_unaligned = function(base, offset) return call("loadu_ps", at(base, offset)) end,
        store = function(base, offset, v) return call("store_ps", at(base, offset), v) end,
        store_unaligned = function(base, offset, v) return call("storeu_ps", at(base, offset), v) end,
        add = function(a, b) return call("add_ps", a, b) end,
        sub = function(a, b) return call("sub_ps", a, b) end,
        mul = function(a, b) return call("mul_ps", a, b) end,
        div = function(a, b) return call("div_ps", a, b) end,
        max = function(a, b) return call("max_ps", a, b) end,
        fma = function(a, b, c) return call("fmadd_ps", a, b, c) end,
        reciprocal_root = function(v) return call("div_ps", call("set1_ps", "1.0f"), call("sqrt_ps", v)) end,
    }
end
