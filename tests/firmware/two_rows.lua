-- The two best rows of each table, in integers; widths that fill no vector.
local m = include "odd.lua"
m.name, m.neighbours = "two_rows", 2
return m
