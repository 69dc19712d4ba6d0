//$ lines("", prologue)
//$ if lanes > 1 then
$(include("templates/lookup/shared/transpose.c"))
//$ end
$(include(hash.template))

/* Sign hash and score of one token (LookupFFN, section "Put it together"), $(lanes > 1 and lanes .. " tables side by side" or "table by table").
   z      [$(shape.h) tables][$(shape.tau) bits]
//$ if shape.neighbours == 1 then
   code   [$(shape.h)]  row of each table: bit j is z > 0, the first bit the most significant
   score  [$(shape.h)]
//$ else
   code   [$(shape.h)][$(shape.neighbours)]  $(rows_text)
   score  [$(shape.h)][$(shape.neighbours)]
   vertices  $(hash.bytes) bytes, 64-byte aligned, overwritten
//$ end
//$ if asks then
   ask    weights whose rows to ask for as soon as their codes are known, or NULL
//$ end
   None may overlap. Cannot fail. 0 and NaN count as bit 0. */
void $(symbol)(const float *restrict z, uint16_t *restrict code, float *restrict score$(vertices_parameter)$(ask_parameter))
{
//$ if lanes == 1 then
    for (size_t table = 0; table < $(shape.h); ++table)
        $(helper)_hash_lanes(z + table * $(shape.tau), code + $(each_table), score + $(each_table)$(vertices_argument));
//$ else
    const float *row[$(lanes)];
//$ if aligned_floats then
    float panel[$(aligned_floats)]; /* [$(shape.tau)][$(lanes)] and room for alignment */
    float *bits = panel + (64 - (uintptr_t) panel % 64) / sizeof(float);
//$ else
    float bits[$(panel_floats)]; /* [$(shape.tau)][$(lanes)] */
//$ end
//$ local function transposed()
//$ for column = 0, shape.tau - 1, lanes do
        $(helper)_transpose$(shape.tau - column >= lanes and "" or "_last")(row, $(column), $(sum("bits", column * lanes)));
//$ end
//$ end
//$ if hash.spread then
    float *lane_score = (float *) (void *) ((unsigned char *) vertices + $(hash.at.score));
    uint16_t *lane_code = (uint16_t *) (void *) ((unsigned char *) vertices + $(hash.at.code));

    for (size_t table = 0; table < $(shape.h); table += $(lanes)) { /* lanes without a table repeat the last one */
        const size_t tables = $(shape.h) - table < $(lanes) ? $(shape.h) - table : $(lanes);
        for (size_t i = 0; i < $(lanes); ++i)
            row[i] = z + (table + (i < tables ? i : tables - 1)) * $(shape.tau);
//$ transposed()
        $(helper)_hash_lanes(bits, lane_code, lane_score, vertices);
        for (size_t i = 0; i < tables; ++i)
            for (size_t n = 0; n < $(shape.neighbours); ++n) {
                *code++ = lane_code[n * $(lanes) + i];
                *score++ = lane_score[n * $(lanes) + i];
            }
    }
//$ else

//$ -- Asks for the beginnings of rows just found, and for their scales: they come while the next tables are hashed. Not a function: gcc
//$ -- drops calls of one that does nothing else.
//$ local function ask(first, count, code)
        if (ask)
            for (size_t i = 0; i < $(count); ++i) {
                const size_t number = ($(first) + i) * $(shape.rows) + $(code);
//$     if tables.scaled then
                $(isa.prefetch_l1("ask->table_scales", "number"));
//$     end
//$     for element = 0, v.early - 1, line_elements do
                $(isa.prefetch_l2("ask->tables", sum("number * " .. pitch, element)));
//$     end
            }
//$ end
//$ local whole, rest = shape.h - shape.h % lanes, shape.h % lanes
//$ if whole > 0 then
    for (size_t table = 0; table < $(whole); table += $(lanes)) {
        for (size_t i = 0; i < $(lanes); ++i)
            row[i] = z + (table + i) * $(shape.tau);
//$ transposed()
        $(helper)_hash_lanes(bits, code + table, score + table);
//$ if asks then ask("table", lanes, "code[table + i]") end
    }
//$ end
//$ if rest > 0 then
    { /* the last $(rest) tables; the other lanes repeat the last one */
        uint16_t last_code[$(lanes)];
        float last_score[$(lanes)];
        for (size_t i = 0; i < $(lanes); ++i)
            row[i] = $(sum("z", whole * shape.tau)) + (i < $(rest) ? i : $(rest - 1)) * $(shape.tau);
//$ transposed()
        $(helper)_hash_lanes(bits, last_code, last_score);
        for (size_t i = 0; i < $(rest); ++i) {
            code[$(sum("i", whole))] = last_code[i];
            score[$(sum("i", whole))] = last_score[i];
        }
//$ if asks then ask(whole, rest, "last_code[i]") end
    }
//$ end
//$ end
//$ end
}
