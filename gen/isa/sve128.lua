-- SVE of firmware: 4 lanes, the first 128 bits of vectors of any length. Panels of weights and rows of tables are
-- short, so that longer vectors would mostly wait for memory.

local sve = require "gen.isa.parts.sve_words"("sve128", 4)

sve.target = "aarch64-sve"

return sve
