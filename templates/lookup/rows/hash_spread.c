//$ takes hash_one, hash, transposed, score, lanes, table_of, prefetch_first, lists_floats
//$ -- Hashes as many tables of a token as lanes, side by side; each lane's codes, of several rows, lie apart at first.
//$ local tables, last = shape.h, shape.h - 1
//$ if shape.h > lanes then tables, last = "tables", "tables - 1" end
//$ local begin = sum("(float *) vertices", lists_floats) -- behind the lists of vertices
$(include("templates/lookup/rows/hash_bits.c"))
    float *lane_score = $(begin); //$ if score.scored
    uint16_t *lane_code = (uint16_t *) (void *) ($(score.scored and sum("lane_score", shape.neighbours * lanes) or begin));

//$ loop("table", 0, shape.h, lanes, function(table)
        /* lanes without a table repeat the last one */ //$ if shape.h % lanes > 0
        const size_t tables = $(shape.h) - table < $(lanes) ? $(shape.h) - table : $(lanes); //$ if shape.h > lanes
        for (size_t i = 0; i < $(lanes); ++i)
//$ local number = shape.h == lanes and "i" or "(i < " .. tables .. " ? i : " .. last .. ")"
            row[i] = $(shape.h == 1 and "z" or "z + " .. times(sum(table, number), shape.tau));
        $(part.transpose)(row, $(part.at), $(sum("bits", part.at * lanes))); //$ for _, part in ipairs(transposed)
        $(hash_one)($(listed("bits", "lane_code", score.scored and "lane_score", hash.lists and "vertices")));
        const uint16_t *found = code; //$ if prefetch_first
//$ loop("i", 0, type(tables) == "number" and tables, 1, function(i)
            for (size_t n = 0; n < $(shape.neighbours); ++n) {
                *code++ = lane_code[$(sum("n * " .. lanes, i))];
                *score++ = lane_score[$(sum("n * " .. lanes, i))]; //$ if score.scored
            }
//$ end, { to = tables, braces = false })
//$ local rows = { count = times(tables, shape.neighbours), codes = "found", first = 0 }
//$ function rows.table_at(i) return sum(table, table_of(i)) end
$(include("templates/lookup/shared/prefetch_found.c", rows)) //$ if prefetch_first
//$ end)
