//$ takes prologue, symbol, helper, kernels, score, hash, lanes, tile, lane_axis, slots_text, rows_text, table_of,
//$ takes vertices_parameter, vertices_argument, prefetch_parameter, prefetch_first, aligned_floats, bits_floats,
//$ takes transposed, of_text, lists_floats
//$ local by_tile = kernels.layout == "lanes"
//$ lines(prologue)
//$ local transpose = {} -- the functions, by their columns
//$ for _, part in ipairs(transposed) do
//$     local prefix = once("templates/lookup/shared/transpose.c", { columns = part.columns })
//$     transpose[part.columns] = prefix .. (part.columns == lanes and "_transpose" or "_transpose_last")
//$ end
$(include(hash.template))

/* $(score.scored and "Sign hash and score" or "Sign hash") of one $(of_text).
   z      [$(plural(shape.h, "table"))][$(plural(shape.tau, "bit"))]$(lane_axis)
   code   $(slots_text)$(lane_axis)  $(rows_text)
   score  $(slots_text)$(lane_axis) //$ if score.scored
   vertices  $(hash.bytes) bytes, 64-byte aligned, overwritten //$ if hash.bytes > 0
   prefetch  weights whose rows to prefetch as soon as their codes are known, or NULL //$ if prefetch_first
   $(by_tile and "z is aligned to a vector. " or "")None may overlap. Cannot fail. 0 and NaN count as bit 0. */
void $(symbol)(const float *restrict z,
    uint16_t *restrict code$(score.scored and ", float *restrict score" or "")$(vertices_parameter)$(prefetch_parameter))
{
//$ if by_tile then
//$ local slots = shape.neighbours * tile
//$ loop("table", 0, shape.h, 1, function()
//$ loop("token", 0, tile, lanes, function(token)
            $(helper)_$(hash.name)($(sum("z", token)),
                $(sum("code", token))$(score.scored and ", " .. sum("score", token) or "")$(vertices_argument));
//$ end, { braces = false })
//$ end, { braces = false,
//$     also = ", z += " .. shape.tau * tile .. ", code += " .. slots
//$     .. (score.scored and ", score += " .. slots or "") })
//$ elseif lanes == 1 then
//$ loop("table", 0, shape.h, 1, function(table)
//$ local at = times(table, shape.neighbours)
        $(helper)_$(hash.name)($(sum("z", times(table, shape.tau))),
            $(sum("code", at))$(score.scored and ", " .. sum("score", at) or "")$(vertices_argument));
//$ end, { braces = false })
//$ else
    const float *row[$(lanes)];
    float buffer[$(aligned_floats)]; /* [$(shape.tau)][$(lanes)] and room for alignment */ //$ if aligned_floats
    float *bits = buffer + (64 - (uintptr_t) buffer % 64) / sizeof(float); //$ if aligned_floats
    float bits[$(bits_floats)]; /* [$(shape.tau)][$(lanes)] */ //$ if not aligned_floats
//$ if hash.spread then
//$ -- They lie behind the lists of vertices.
//$ local begin = sum("(float *) vertices", lists_floats)
    float *lane_score = $(begin); //$ if score.scored
    uint16_t *lane_code = (uint16_t *) (void *) ($(score.scored and sum("lane_score", shape.neighbours * lanes) or begin));

//$ local tables, last = shape.h, shape.h - 1
//$ if shape.h > lanes then tables, last = "tables", "tables - 1" end
//$ loop("table", 0, shape.h, lanes, function(table)
        /* lanes without a table repeat the last one */ //$ if shape.h % lanes > 0
        const size_t tables = $(shape.h) - table < $(lanes) ? $(shape.h) - table : $(lanes); //$ if shape.h > lanes
        for (size_t i = 0; i < $(lanes); ++i)
//$ local number = shape.h == lanes and "i" or "(i < " .. tables .. " ? i : " .. last .. ")"
            row[i] = $(shape.h == 1 and "z" or "z + " .. times(sum(table, number), shape.tau));
        $(transpose[part.columns])(row, $(part.at), $(sum("bits", part.at * lanes))); //$ for _, part in ipairs(transposed)
        $(helper)_$(hash.name)(bits, lane_code$(score.scored and ", lane_score" or "")$(hash.lists and ", vertices" or ""));
        const uint16_t *found = code; //$ if prefetch_first
//$ loop("i", 0, type(tables) == "number" and tables, 1, function(i)
            for (size_t n = 0; n < $(shape.neighbours); ++n)$(score.scored and " {" or "")
                *code++ = lane_code[$(sum("n * " .. lanes, i))];
                *score++ = lane_score[$(sum("n * " .. lanes, i))]; //$ if score.scored
            } //$ if score.scored
//$ end, { to = tables, braces = false })
//$ local rows = { count = times(tables, shape.neighbours), codes = "found", first = 0 }
//$ function rows.table_at(i) return sum(table, table_of(i)) end
$(include("templates/lookup/shared/prefetch_found.c", rows)) //$ if prefetch_first
//$ end)
//$ else

//$ local whole, rest = shape.h - shape.h % lanes, shape.h % lanes
//$ loop("table", 0, whole, lanes, function(table)
        for (size_t i = 0; i < $(lanes); ++i)
            row[i] = z + $(times(sum(table, "i"), shape.tau));
        $(transpose[part.columns])(row, $(part.at), $(sum("bits", part.at * lanes))); //$ for _, part in ipairs(transposed)
        $(helper)_$(hash.name)(bits, $(sum("code", table))$(score.scored and ", " .. sum("score", table) or ""));
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
        $(transpose[part.columns])(row, $(part.at), $(sum("bits", part.at * lanes))); //$ for _, part in ipairs(transposed)
        $(helper)_$(hash.name)(bits, last_code$(score.scored and ", last_score" or ""));
//$ loop("i", 0, rest, 1, function(lane)
            code[$(sum(lane, whole))] = last_code[$(lane)];
            score[$(sum(lane, whole))] = last_score[$(lane)]; //$ if score.scored
//$ end)
//$ local rows = { count = rest, codes = "last_code", first = 0 }
//$ function rows.table_at(i) return sum(i, whole) end
$(include("templates/lookup/shared/prefetch_found.c", rows)) //$ if prefetch_first
    }
//$ end
//$ end
//$ end
}
