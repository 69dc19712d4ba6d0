-- Plans the dense projection z = x Wᵀ + bias, W [h*tau][d]: one block product whose blocks all read the whole input.
local product = require "gen.families.lookup.product"

local dense = {}

-- shape: d, bits, projection. Returns { products, words, panel_floats (of the largest panel), most_lines (of words of a
-- block), boxes, rows = {x, z}, flops }.
function dense.plan(shape)
    local plan = {
        products = {},
        words = 0,
        panel_floats = 0,
        most_lines = 0,
        boxes = {},
        flops = 0,
        rows = { x = shape.d, z = shape.bits },
    }
    local function add(count, outputs, first_output)
        if count == 0 or outputs == 0 then return end
        local source = { at = first_output * shape.d, block = outputs * shape.d, fold = 0, row = 1, output = shape.d }
        local p = product.plan(
            { count = count, rows = shape.d, outputs = outputs, folds = 1, x_stride = 0 },
            plan.words,
            shape.projection.word.rows,
            source
        )
        p.first_output, p.scale_at = first_output, first_output
        plan.products[#plan.products + 1] = p
        plan.words = plan.words + p.words
        plan.flops = plan.flops + p.flops
        plan.panel_floats = math.max(plan.panel_floats, p.panel_floats)
        plan.most_lines = math.max(plan.most_lines, p.depth)
        for _, box in ipairs(p.boxes) do
            plan.boxes[#plan.boxes + 1] = box
        end
    end
    local blocks = shape.bits // product.panel
    add(blocks, product.panel, 0)
    add(1, shape.bits % product.panel, blocks * product.panel)
    return plan
end

return dense
