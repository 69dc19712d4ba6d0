-- Which words of an instruction set multiply the bytes of two indices and add them up, by how large they may be.

-- For signed bytes up to `levels` and unsigned ones up to 2 levels + 1: `dot` of two words, `dot_two` of two pairs of
-- words at once, nil if there is none; `dot_narrow`, of bytes whose products fit into 16 bits two by two, whatever
-- `levels` is.
return function(isa, levels)
    local narrow = isa.dot_i7 or isa.dot_i8
    local few = levels < 64
    return { dot = few and narrow or isa.dot_i8, dot_two = few and isa.dot_two_i7 or nil, dot_narrow = narrow }
end
