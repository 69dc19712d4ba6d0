-- The array that `run` applies a model to: looked at before anything is packed and compiled.
local host = require "host"
local npy = require "npy"

local input = {}

-- The number of tokens of `d` values in the file `path`; raises one line if it is no array of them. Says on standard
-- error if they are converted.
function input.check(path, d)
    local tokens, wide = npy.tokens(path, d)
    if not tokens then error(wide, 0) end
    if wide then host.note("lookupc run: " .. path .. ": float64 is converted to float32") end
    return tokens
end

return input
