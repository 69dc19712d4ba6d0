-- The kind of error that says the command line is wrong, not a file, the machine or a measurement: the program ends
-- with status 2.
local kind = {
    __name = "misuse",
    __tostring = function(e) return e.text end,
    __concat = function(a, b) return tostring(a) .. tostring(b) end,
    __status = 2,
}

-- Raises the line `text`, which begins with the name of an option.
return function(text) error(setmetatable({ text = text }, kind), 0) end
