//$ takes isa, prologue, symbol, helper, kernels, score, hash, lanes, tile, tables, constant, rows_text,
//$ takes vertices_parameter, vertices_argument
//$ takes prefetch_parameter, prefetch_first, aligned_floats, bits_floats, line_elements, place, transposes
//$ local by_tile, lane_axis = kernels.layout == "lanes", kernels.layout == "lanes" and "[" .. tile .. "]" or ""
//$ lines(prologue)
//$ local transpose = {}
//$ for _, n in ipairs(lanes > 1 and not by_tile and transposes or {}) do
//$     transpose[n] = once("templates/lookup/shared/transpose.c", { columns = n }) .. (n == lanes and "_transpose" or "_transpose_last")
//$ end
$(include(hash.template))
//$ local of = by_tile and "tile of " .. tile .. " tokens" or "token"
//$ local how = by_tile and "" or lanes > 1 and ", " .. lanes .. " tables side by side" or ", table by table"

/* $(score.scored and "Sign hash and score" or "Sign hash") of one $(of) (LookupFFN, section "Put it together")$(how).
   z      [$(plural(shape.h, "table"))][$(plural(shape.tau, "bit"))]$(lane_axis)
//$ if shape.neighbours == 1 then
   code   [$(shape.h)]$(lane_axis)  row of each table: bit j is z > 0, the first bit the most significant
   score  [$(shape.h)]$(lane_axis) //$ if score.scored
//$ else
   code   [$(shape.h)][$(shape.neighbours)]$(lane_axis)  $(rows_text)
   score  [$(shape.h)][$(shape.neighbours)]$(lane_axis) //$ if score.scored
   vertices  $(hash.bytes) bytes, 64-byte aligned, overwritten //$ if hash.bytes > 0
//$ end
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
//$ if aligned_floats then
    float buffer[$(aligned_floats)]; /* [$(shape.tau)][$(lanes)] and room for alignment */
    float *bits = buffer + (64 - (uintptr_t) buffer % 64) / sizeof(float);
//$ else
    float bits[$(bits_floats)]; /* [$(shape.tau)][$(lanes)] */
//$ end
//$ local function transposed()
//$ for column = 0, shape.tau - 1, lanes do
        $(transpose[shape.tau - column < lanes and shape.tau - column or lanes])(row, $(column), $(sum("bits", column * lanes)));
//$ end
//$ end
//$ -- Prefetches the beginnings of rows just found, and their scales: they come while the next tables are hashed. Not a function: gcc
//$ -- drops calls of one that does nothing else.
//$ local function prefetch_found(count, table_of, code)
        if (prefetch)$(count == 1 and " {" or "")
//$ loop("i", 0, type(count) == "number" and count, 1, function(i)
                const size_t number = $(sum(times(table_of(i), constant("TABLE_ROWS")), code(i)));
                $(isa.prefetch_l1("prefetch->table_scales", "number")); //$ if tables.scaled
//$     for element = 0, prefetch_first - 1, line_elements do
                $(isa.prefetch_l2("prefetch->tables", sum("number * " .. constant("ROW_PITCH"), place(element))));
//$     end
//$ end, { to = count })
        } //$ if count == 1
//$ end
//$ if hash.spread then
//$ -- They lie behind the lists of vertices.
//$ local list_floats = hash.count * lanes
//$ local lists = hash.list_count > 1 and hash.list_count .. " * " .. list_floats or hash.list_count * list_floats
//$ local begin = sum("(float *) vertices", lists)
    float *lane_score = $(begin); //$ if score.scored
    uint16_t *lane_code = (uint16_t *) (void *) ($(score.scored and sum("lane_score", shape.neighbours * lanes) or begin));

//$ local tables = shape.h > lanes and "tables" or shape.h
//$ loop("table", 0, shape.h, lanes, function(table)
        /* lanes without a table repeat the last one */ //$ if shape.h % lanes > 0
        const size_t tables = $(shape.h) - table < $(lanes) ? $(shape.h) - table : $(lanes); //$ if shape.h > lanes
        for (size_t i = 0; i < $(lanes); ++i)
//$ local last = shape.h > lanes and "tables - 1" or shape.h - 1
//$ local number = shape.h == lanes and "i" or "(i < " .. tables .. " ? i : " .. last .. ")"
            row[i] = $(shape.h == 1 and "z" or "z + " .. times(sum(table, number), shape.tau));
//$ transposed()
        $(helper)_$(hash.name)(bits, lane_code$(score.scored and ", lane_score" or "")$(hash.lists and ", vertices" or ""));
        const uint16_t *found = code; //$ if prefetch_first
//$ loop("i", 0, type(tables) == "number" and tables, 1, function(i)
            for (size_t n = 0; n < $(shape.neighbours); ++n)$(score.scored and " {" or "")
                *code++ = lane_code[$(sum("n * " .. lanes, i))];
//$ if score.scored then
                *score++ = lane_score[$(sum("n * " .. lanes, i))];
            }
//$ end
//$ end, { to = tables, braces = false })
//$ if prefetch_first then
//$     prefetch_found(times(tables, shape.neighbours), function(i) return sum(table, i .. " / " .. shape.neighbours) end,
//$         function(i) return "found[" .. i .. "]" end)
//$ end
//$ end)
//$ else

//$ local whole, rest = shape.h - shape.h % lanes, shape.h % lanes
//$ loop("table", 0, whole, lanes, function(table)
        for (size_t i = 0; i < $(lanes); ++i)
            row[i] = z + $(times(sum(table, "i"), shape.tau));
//$ transposed()
        $(helper)_$(hash.name)(bits, $(sum("code", table))$(score.scored and ", " .. sum("score", table) or ""));
//$ if prefetch_first then
//$     prefetch_found(lanes, function(i) return sum(table, i) end, function(i) return "code[" .. sum(table, i) .. "]" end)
//$ end
//$ end)
//$ if rest > 0 then
    { /* the last $(rest == 1 and "table, in all lanes" or rest .. " tables; the other lanes repeat the last one") */
        uint16_t last_code[$(lanes)];
        float last_score[$(lanes)]; //$ if score.scored
        for (size_t i = 0; i < $(lanes); ++i)
            row[i] = $(sum("z", whole * shape.tau)); //$ if rest == 1
            row[i] = $(sum("z", whole * shape.tau)) + (i < $(rest) ? i : $(rest - 1)) * $(shape.tau); //$ if rest ~= 1
//$ transposed()
        $(helper)_$(hash.name)(bits, last_code$(score.scored and ", last_score" or ""));
//$ loop("i", 0, rest, 1, function(lane)
            code[$(sum(lane, whole))] = last_code[$(lane)];
            score[$(sum(lane, whole))] = last_score[$(lane)]; //$ if score.scored
//$ end)
//$ if prefetch_first then
//$     prefetch_found(rest, function(i) return sum(i, whole) end, function(i) return "last_code[" .. i .. "]" end)
//$ end
    }
//$ end
//$ end
//$ end
}
