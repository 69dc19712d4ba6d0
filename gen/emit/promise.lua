-- What headers promise of calls: objects of these compilers, at these levels, import nothing. The sentence is printed
-- from the rows with which tests/fuzz/compiled_test.lua proves it.
local promise = {
    compilers = { "gcc", "clang" },
    levels = { "-O1", "-O2", "-O3", "-Os" },
}

-- What a header's comment says; `target`: the row of gen/plan/target.lua that firmware is for, nil: it is none.
-- `floats`: whether the kernels have any, for which a CPU without FPU needs functions of the compiler.
function promise.text(target, floats)
    local compilers = target and target.compiler or table.concat(promise.compilers, " or ")
    local last = #promise.levels
    local levels = table.concat(promise.levels, ", ", 1, last - 1) .. " or " .. promise.levels[last]
    return "No function allocates memory, keeps state or calls a library: objects made by "
        .. compilers
        .. " at "
        .. levels
        .. " import nothing"
        .. (target and target.soft_float and floats and " but the compiler's own arithmetic of floats" or "")
        .. "."
end

return promise
