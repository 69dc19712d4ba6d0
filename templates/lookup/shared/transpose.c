//$ takes isa, lanes, helper, columns, step, used
//$ local all = columns == isa.lanes

//$ if all then
/* Columns column … column + $(columns - 1) of $(plural(lanes, "row")) become rows of the panel. */
static inline void $(helper)_transpose(const float *const *row, size_t column, float *restrict panel)
//$ else
/* The last $(plural(columns, "column")), from column on, of $(plural(lanes, "row")) become rows of the panel. */
static inline void $(helper)_transpose_last(const float *const *row, size_t column, float *restrict panel)
//$ end
{
//$     local rows = {}
//$     for lane = 0, isa.lanes - 1 do
//$         rows[lane + 1] = "row" .. lane
//$         local at = "row[" .. lane .. "]"
    const $(isa.vector) row$(lane) = $(all and isa.load_unaligned(at, "column") or isa.load_partial(at, "column", columns));
//$     end
//$     local code, out = isa.transpose(rows)
    const $(isa.vector) $(step.name) = $(step.value); //$ for _, step in ipairs(used(code, out, columns))
    $(isa.store("panel", column * step, out[column + 1])); //$ for column = 0, columns - 1
}
