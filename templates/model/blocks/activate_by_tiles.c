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
//$ if gate then
    $(matrix) gates;
    const size_t share = $(v.product.tiles.gates) / count; /* panels at a time, so that their gates stay in L2 */
//$ end

    if (count < $(v.product.tiles.from)) {
        $(v.names.product)(&own->$(gate.map.field), &b->$(gate.from), &b->$(gate.to), count); //$ if gate
        $(v.names.product)(&own->$(map.field), &b->$(joined.of.from), &b->$(joined.of.to), count);
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
    gates.inputs = own->$(gate.map.field).inputs;
    for (size_t panel = 0, end; panel < own->$(map.field).panels; panel = end) {
        end = own->$(map.field).panels - panel < share ? own->$(map.field).panels : panel + share;
//$ -- words: 32 of each input word of a panel
        gates.weights = own->$(gate.map.field).weights + panel * $(32 * joined.of.words);
        gates.scales = own->$(gate.map.field).scales + panel * 32; //$ if integers
        gates.bias = own->$(gate.map.field).bias + panel * 32;
        gates.panels = end - panel;
        $(v.names.product)(&gates, &b->$(gate.from), &b->$(gate.to), count);
        $(helper)_hidden_by_tiles(&own->$(map.field), &b->$(joined.of.from), &to, panel, end, count);
    }
//$ else
    $(helper)_hidden_by_tiles(&own->$(map.field), &b->$(joined.of.from), &to, 0, own->$(map.field).panels, count);
//$ end
//$ if integers then
    $(round(joined.inputs):gsub("_rounded_(%d+)$", "_rounded_measured_%1"))(to.y, to.y_step, to.rounded, to.rounded_step, count);
//$ end
}
