//$ takes helper, tape
//$ -- The rows that functions of a tape read and write, in two structs: those of values and those of gradients.
//$ local docs = {
//$     values = "The values of " .. tape.what .. ". In memory the rows of each lie behind those of the one before.",
//$     gradients = "Gradients of values, likewise; `out` is that of the output" .. (tape.first and ", `in` that of the input." or "."),
//$ }
//$ local kept = sum(tape.place("kept", tape.at), tape.of_layer(tape.place("kept_layer", tape.region)))
//$ local begins = { values = sum("r->memory", "r->kept_at", times(kept, "r->all")), gradients = "r->memory + r->arena_at" }
//$ for _, struct in ipairs(tape.structs()) do
//$ local type = helper .. "_" .. tape.word .. "_" .. struct.kind

/* $(docs[struct.kind]) */
typedef struct $(type) {
    $(names.rows) $(struct.names);
} $(type);

/* Those from token number `first` on. */
static void $(type)_at(const $(helper)_run *r, size_t first, $(type) *$(struct.variable))
{
//$ if struct.in_memory then
    float *at = $(begins[struct.kind]);

//$ end
//$ for _, field in ipairs(struct.fields) do
//$ local own = struct.variable .. "->" .. field.name
//$ if field.of then
    $(own).at = $(sum(struct.variable .. "->" .. field.of .. ".at", field.at));
    $(own).step = $(struct.variable)->$(field.of).step;
//$ elseif field.base then
    $(own).at = $(sum(field.base, times("first", field.step)));
    $(own).step = $(field.step);
//$ else
    $(helper)_next_rows(r, &at, $(field.step), first, &$(own));
//$ end
//$ end
}
//$ end
