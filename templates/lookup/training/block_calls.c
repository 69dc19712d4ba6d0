//$ takes helper, calls
//$ for _, one in ipairs(calls) do
//$ loop("block", 0, one.count, 1, function(block)
        $(helper)_$(one.name)($(one.arguments(block)));
//$ end, { braces = false })
//$ end
