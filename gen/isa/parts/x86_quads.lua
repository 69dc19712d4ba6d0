-- How the integer gather of x86 puts the bytes of four rows side by side, alike in each 128-bit part of a vector.

-- With the functions of an instruction set, call(name, ...): the steps { name, value } that put the four rows' integers
-- of a column into a word, and the four vectors of words, whose columns are not in order yet.
return function(call)
    return function(row)
        local steps = {
            { name = "pair0", value = call("unpacklo_epi8", row[1], row[2]) },
            { name = "pair1", value = call("unpackhi_epi8", row[1], row[2]) },
            { name = "pair2", value = call("unpacklo_epi8", row[3], row[4]) },
            { name = "pair3", value = call("unpackhi_epi8", row[3], row[4]) },
        }
        local quads = {
            call("unpacklo_epi16", "pair0", "pair2"),
            call("unpackhi_epi16", "pair0", "pair2"),
            call("unpacklo_epi16", "pair1", "pair3"),
            call("unpackhi_epi16", "pair1", "pair3"),
        }
        return steps, quads
    end
end
