//$ takes hash_one, transposed, score, lanes, prefetch_first
//$ -- Hashes as many tables of a token as lanes, side by side, and the last ones in the first lanes.
//$ local whole, rest = shape.h - shape.h % lanes, shape.h % lanes
$(include("templates/lookup/rows/hash_bits.c"))

//$ loop("table", 0, whole, lanes, function(table)
        for (size_t i = 0; i < $(lanes); ++i)
            row[i] = z + $(times(sum(table, "i"), shape.tau));
        $(part.transpose)(row, $(part.at), $(sum("bits", part.at * lanes))); //$ for _, part in ipairs(transposed)
        $(hash_one)($(listed("bits", sum("code", table), score.scored and sum("score", table))));
//$ local rows = { count = lanes, codes = "code", first = table }
//$ function rows.table_at(i) return sum(table, i) end
$(include("templates/lookup/shared/prefetch_found.c", rows)) //$ if prefetch_first
//$ end)
//$ if rest > 0 then
    { /* the last $(rest == 1 and "table, in all lanes" or rest .. " tables; the other lanes repeat the last one") */
        uint16_t last_code[$(lanes)];
        float last_score[$(lanes)]; //$ if score.scored
        for (size_t i = 0; i < $(lanes); ++i)
            row[i] = $(sum("z", whole * shape.tau)); //$ if rest == 1
            row[i] = $(sum("z", whole * shape.tau)) + (i < $(rest) ? i : $(rest - 1)) * $(shape.tau); //$ if rest ~= 1
        $(part.transpose)(row, $(part.at), $(sum("bits", part.at * lanes))); //$ for _, part in ipairs(transposed)
        $(hash_one)($(listed("bits", "last_code", score.scored and "last_score")));
//$ loop("i", 0, rest, 1, function(lane)
            code[$(sum(lane, whole))] = last_code[$(lane)];
            score[$(sum(lane, whole))] = last_score[$(lane)]; //$ if score.scored
//$ end)
//$ local rows = { count = rest, codes = "last_code", first = 0 }
//$ function rows.table_at(i) return sum(i, whole) end
$(include("templates/lookup/shared/prefetch_found.c", rows)) //$ if prefetch_first
    }
//$ end
