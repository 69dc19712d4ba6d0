//$ takes helper, v, tiles, activated, joined, round, matrix
//$ -- The last product before an activation, and the latter, on a matrix engine. joined: the activation's step.
//$ local map, gate, integers = joined.of.map, joined.of_gate, shape.rounded.integers
//$ local epilogue = { activated = activated, gate = joined.gate }
//$ local given = { helper = helper .. "_hidden", epilogue = epilogue, sums = tiles.sums, outputs = tiles.outputs, dot = tiles.dot }
$(include("templates/model/blocks/product_tiles.c", given))

/* $(gate and gate.map.letter .. " and " or "")$(map.letter), and their activated and rounded outputs. */
static void $(helper)_project_and_activate(const $(names.type("layer")) *own, const $(names.type("buffers")) *b, size_t count)
{
    $(helper)_hidden_output to;
    $(matrix) map;
//$ if gate then
    $(matrix) gates, some_gates;
    const size_t share = $(v.product.tiles.gates) / count; /* panels at a time, so that their gates stay in L2 */
//$ end

    $(helper)_$(map.field)_at(own, &map);
    $(helper)_$(gate.map.field)_at(own, &gates); //$ if gate
//$ local function rows(name) return "b->" .. name .. ".at, b->" .. name .. ".step" end
    if (count < $(v.product.tiles.from)) {
        $(v.names.product)(&gates, $(rows(gate.from)), $(rows(gate.to)), count); //$ if gate
        $(v.names.product)(&map, $(rows(joined.of.from)), $(rows(joined.of.to)), count);
        $(helper)_activate(b, count);
        return;
    }
    to.rounded = b->$(joined.rounded).at;
    to.rounded_step = b->$(joined.rounded).step;
//$ if integers then
    to.y = b->$(joined.to).at;
    to.y_step = b->$(joined.to).step;
//$ end
//$ if gate then
    to.gate = b->$(joined.gate).at;
    to.gate_step = b->$(joined.gate).step;
    some_gates.inputs = gates.inputs;
    for (size_t panel = 0, end; panel < map.panels; panel = end) {
        end = map.panels - panel < share ? map.panels : panel + share;
//$ -- words: 32 of each input word of a panel
        some_gates.weights = gates.weights + panel * $(32 * joined.of.words);
        some_gates.scales = gates.scales + panel * 32; //$ if integers
        some_gates.bias = gates.bias + panel * 32;
        some_gates.panels = end - panel;
        $(v.names.product)(&some_gates, $(rows(gate.from)), $(rows(gate.to)), count);
        $(helper)_hidden_by_tiles(&map, $(rows(joined.of.from)), &to, panel, end, count);
    }
//$ else
    $(helper)_hidden_by_tiles(&map, $(rows(joined.of.from)), &to, 0, map.panels, count);
//$ end
//$ if integers then
    $(round(joined.inputs):gsub("_rounded_(%d+)$", "_rounded_measured_%1"))(to.y, to.y_step, to.rounded, to.rounded_step, count);
//$ end
}
