//$ takes prologue, symbol, fraction, slots_text, may_have, tables
//$ lines(prologue)

$(include("templates/lookup/integer/sums.c"))
//$ -- Strips have 4 columns, or 16 where there are vectors.
//$ local rest = shape.d_out % (may_have.vectors and 16 or 4) > 0
//$ local slot = shape.neighbours == 1 and "table" or "slot"
//$ local packed = tables.bytes < 1
//$ local column = packed and "column / 2" or "column"

/* Gathers one token: y = bias + sum over the $(shape.neighbours == 1 and "tables" or "rows") of score times row,
   rounded to $(fraction) binary places.
   weights  bound weights
   row      $(slots_text), each below $(shape.h * shape.rows)
   score    $(slots_text)
   y        [$(shape.d_out)]
   None may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const uint32_t *restrict row, const int32_t *restrict score, int32_t *restrict y)
{
    const unsigned shift = weights->shifts[$(names.macro("SHIFT_Y"))];
    size_t column = 0; //$ if rest

    for ($(rest and "" or "size_t column = 0"); column + $(names.macro("STRIP")) <= $(shape.d_out); column += $(names.macro("STRIP"))) {
        $(model)_gather_sums sums;
        $(model)_gather_begin(weights->bias + column, &sums);
//$ loop(slot, 0, shape.slots, 1, function(slot)
            $(model)_gather_add(score[$(slot)], weights->tables + row[$(slot)] * $(names.macro("ROW_PITCH")) + $(column), &sums);
//$ end)
        $(model)_gather_end(&sums, shift, y + column);
    }
//$ if rest then
#if $(shape.d_out) % $(names.macro("STRIP")) //$ if shape.d_out % 4 == 0
    for (; column < $(shape.d_out); ++column) {
        int32_t sum = weights->bias[column];
//$ loop(slot, 0, shape.slots, 1, function(slot)
//$     local place = "row[" .. slot .. "] * " .. names.macro "ROW_PITCH"
//$     local element = packed and model .. "_gather_element(weights->tables + " .. place .. ", column)"
            sum += score[$(slot)] * $(element or "weights->tables[" .. place .. " + column]");
//$ end)
        y[column] = $(model)_shift_rounded(sum, shift);
    }
#endif //$ if shape.d_out % 4 == 0
//$ end
}
