//$ takes isa, helper, tile, integers, of, kernels, weights_of, adds_residual, residual, hash, score, vertices_argument, vertices_parameter
//$ -- A dense product on a matrix engine: 16 or 32 tokens times 32 outputs at a time, or of 16-bit numbers 16 by 16, while sums of those
//$ -- before become outputs, and outputs codes and scores.
//$ local splits = of.splits
//$ local groups, at_once, panel = tile % 32 == 0 and not splits and 2 or 1, splits and 1 or 2, 16
//$ local parts, depth = groups * at_once, splits and 32 or 16
//$ local steps, tiles_of_sums = of.lines // depth, splits and 3 or 1
//$ local inputs, sums = integers and "integers" or "halves", integers and "uint32_t" or "float"
//$ local sums_before = parts > 1 and "(sums[1 - now] + 16 * (done % " .. parts .. "))" or "sums[1 - now]"
//$ sums_before = "(const " .. sums .. " *) (const void *) " .. sums_before
//$ local x_step, period = kernels.projection.x_step, adds_residual and kernels.shape.of.padded
//$ local some_apart = period and shape.d < period -- outputs that no input bypasses
//$ local work = helper .. "_work(&blocks[1 - now], " .. sums_before .. ", done" .. vertices_argument .. ")"
//$ -- Lines that transpose the vectors row0 … row15 and store them by store(number, name).
//$ local function transposed(store)
//$     local rows = {}
//$     for row = 0, 15 do rows[row + 1] = "row" .. row end
//$     local code, out = isa.transpose(rows)
    const $(isa.vector) $(step.name) = $(step.value); //$ for _, step in ipairs(code)
    $(store(number - 1, name)); //$ for number, name in ipairs(out)
//$ end

//$ if splits then
/* 32 lines of 16 words, each of two numbers of 16 bits, become 16 lines of their upper bytes, then 16 of
   their lower ones. Lines lie step apart before, to_step behind; `to` may be `from`. */
static void $(helper)_split_bytes(const uint32_t *from, size_t step, uint32_t *to, size_t to_step)
{
    for (size_t line = 0; line < 16; ++line) {
        const $(isa.index) first = $(isa.load_words("from", "line * step"));
        const $(isa.index) second = $(isa.load_words("from", "(16 + line) * step"));
        $(isa.store_words("to", "line * to_step", isa.upper_bytes("first", "second")));
        $(isa.store_words("to", "(16 + line) * to_step", isa.lower_bytes("first", "second")));
    }
}

//$ end
//$ if integers then
/* 16 words of 16 tokens become 16 rows of a token's words, in place; rows of words lie $(tile) apart. */
static void $(helper)_turn(uint32_t *words)
{
    float *rows = (float *) (void *) words;
    const $(isa.vector) row$(row) = $(isa.load("rows", row * tile)); //$ for row = 0, 15
//$ transposed(function(number, name) return isa.store("rows", number * tile, name) end)
}
//$ else
/* 32 inputs of 16 tokens become 16 words of each token, two inputs in bf16 to a word.
   x      [32][$(tile)]
   words  [16 tokens][16], $(of.lines) apart */
static void $(helper)_turn(const float *restrict x, uint32_t *restrict words)
{
    $(isa.vector) first[16];
    {
    const $(isa.vector) row$(row) = $(isa.load("x", row * tile)); //$ for row = 0, 15
//$ transposed(function(number, name) return "first[" .. number .. "] = " .. name end)
    }
    const $(isa.vector) row$(row) = $(isa.load("x", (16 + row) * tile)); //$ for row = 0, 15
//$ transposed(function(number, name) return isa.store_bf16("words", number * of.lines, "first[" .. number .. "]", name) end)
}
//$ end

//$ if splits then
/* What becomes of the sums of three tiles: of products of upper bytes, of upper and lower ones, and of lower ones,
   each [16 tokens][16 outputs]. */
//$ else
/* What becomes of the sums of a tile, [16 tokens][16 outputs]. */
//$ end
typedef struct {
    const uint32_t *starts; //$ if integers and integers.starts
    const float *units, *scales; //$ if integers
    const float *bias;
//$ if period then
    const float *x; /* the share of the input that bypasses the projection$(some_apart and ", or NULL" or "") */
    const float *residual; //$ if residual == "vector"
//$ end
    float *y;
} $(helper)_part;

/* Sums become outputs, [16 outputs][$(tile)]: with bias$(period and " and residual" or ""). */
static inline void $(helper)_finish(const $(helper)_part *part, const $(sums) *sums)
{
    const $(isa.vector) scale = $(isa.load_unaligned("part->scales", 0)); //$ if integers
//$ for row = 0, 15 do
//$     local value = isa.load("sums", row * 16)
//$     if integers then
//$         local function words(tile) return isa.load_words("sums", 256 * tile + row * 16) end
//$         local whole = splits and isa.sum_of_bytes(words(0), words(1), words(2))
//$             or isa.index_add(words(0), isa.index_broadcast("part->starts[" .. row .. "]"))
//$         value = isa.mul(isa.mul(isa.float_of(whole), "scale"), isa.broadcast("part->units[" .. row .. "]"))
//$     end
    const $(isa.vector) row$(row) = $(value);
//$ end
    float *y = part->y;
//$ local function biased(number, name) return isa.add(name, isa.broadcast("part->bias[" .. number .. "]")) end
//$ transposed(function(number, name)
//$     local value = biased(number, name)
//$     if period then
//$         local gain = residual == "vector" and "part->residual[" .. number .. "]" or residual
//$         local whole = isa.fma(isa.broadcast(gain), isa.load("part->x", number * tile), value)
//$         value = some_apart and "part->x ? " .. whole .. " : " .. value or whole
//$     end
//$     return isa.store("y", number * tile, value)
//$ end)
}
$(include(hash.template))

/* $(16 * groups) tokens by $(panel * at_once) outputs: their sums, then tables first … end - 1, whose outputs are all there. */
typedef struct {
    $(helper)_part part[$(parts)];
    const float *z;
    uint16_t *code;
    float *score; //$ if score.scored
    size_t first, end;
} $(helper)_block;

/* Piece `number` of the work on a block: its parts, then its tables, of 16 tokens each. */
static void $(helper)_work(const $(helper)_block *block, const $(sums) *sums, size_t number$(vertices_parameter))
{
    if (number < $(parts)) {
        $(helper)_finish(&block->part[number], sums);
        return;
    }
//$ local slots, piece = shape.neighbours * tile, "(number - " .. parts .. ")"
//$ local of_score = score.scored and ", block->score + table * " .. slots .. " + token" or ""
    const size_t table = block->first + $(groups > 1 and piece .. " / " .. groups or piece);
    const size_t token = $(groups > 1 and piece .. " % " .. groups .. " * 16" or 0);
    $(helper)_$(hash.name)(block->z + table * $(shape.tau * tile) + token,
        block->code + table * $(slots) + token$(of_score)$(vertices_argument));
}

//$ if splits then
/* $(of.panels) panels of $(panel) outputs of all tiles. Rounded inputs have been split and turned: 16 tokens by 16 words
   are a tile of the engine. Upper bytes have signs. All sums together stay below 2^31: they are exact.
//$ else
/* $(of.panels) panels of $(panel) outputs of all tiles, by two. Rounded inputs have been turned: 16 tokens by 16 words
   are a tile of the engine.
//$ end
   Of the last panel $(plural(of.width, "output")) count: what lies behind its words fills it. //$ if of.width < panel
   The one before the last is computed twice. //$ if of.panels % at_once == 1
//$ if integers then
//$ local units_of, starts_text = splits and "[x, outputs]" or "", splits and "" or "; starts  [tiles][" .. tile .. "]"
   integers  [tiles][$(of.lines)][$(tile)]; units  [tiles]$(units_of)[unit, inverse][$(tile)]$(starts_text)
//$ else
   halves    [tiles][$(tile)][$(of.lines)]
//$ end
   w         [panels][$(of.lines)][$(panel)]$(of.width < panel and ", the last one [" .. of.lines .. "][" .. of.width .. "]" or "")
   y         [tiles][$(of.panels * panel)][$(tile)]$(splits and "" or " */")
   bytes     [$(of.lines)][$(panel)], a panel of weights, split */ //$ if splits
//$ local factors = "const float *restrict units, " .. (splits and "" or "const uint32_t *restrict starts, ")
static void $(helper)_by_tiles(const $(names.weights) *weights,$(period and " const float *restrict x," or "")
    const uint32_t *restrict $(inputs),
    $(integers and factors or "")float *restrict y,$(splits and " uint32_t *restrict bytes," or "")
    uint16_t *restrict code$(score.scored and ", float *restrict score" or "")$(vertices_parameter), size_t tiles)
{
    const uint32_t *w = weights->$(weights_of);

    /* stores of the one do not meet loads of the other at the same place in a page */
    $(integers and isa.index or isa.vector) sums[2][$(parts * tiles_of_sums * 16 + 3)];
    $(helper)_block blocks[2];
    size_t done = 0, pieces = 0, now = 0;

    $(isa.tile_configure());
    for (size_t panel = 0; panel < $(of.panels); $(splits and "++panel" or "panel += 2")) {
//$ local first, width = of.panels % at_once == 1 and "first" or "panel", of.width < panel and "width" or panel
        const size_t first = panel + 2 > $(of.panels) ? $(of.panels - 2) : panel; //$ if first == "first"
//$ if width == "width" then
        const size_t width = $(first) == $(of.panels - at_once) ? $(of.width) : $(panel);$(splits and "" or " /* of the second one */")
//$ end
//$ if splits then
        for (size_t k = 0; k < $(of.lines); k += 32)
            $(helper)_split_bytes(w + panel * $(of.panel_words) + k * $(width), $(width), bytes + k * $(panel), $(panel));
//$ else
        const uint32_t *left = w + $(first) * $(of.panel_words), *right = left + $(of.panel_words);
//$ end
//$ local whole = tile == 16 * groups
//$ -- Pieces of work on a block at most; the table behind those whose outputs it completes.
//$ local most = parts + groups * ((at_once * panel + shape.tau - 1) // shape.tau)
//$ local slots = most > 2 * steps and parts or most > steps and parts // 2 or 1 -- for work in a step, between products
//$ local ends = "(panel + " .. at_once .. ") * " .. panel .. " / " .. shape.tau
//$ if of.panels % at_once > 0 or of.width < panel then
//$     ends = "panel + " .. at_once .. " < " .. of.panels .. " ? " .. ends .. " : " .. shape.h
//$ end
        for (size_t tile = 0; tile < tiles; ++tile)$(whole and " {" or "")
            for (size_t token = 0; token < $(tile); token += $(16 * groups)) { //$ if not whole
//$ local to = "y + tile * " .. kernels.projection.y_step .. " + " .. first .. " * " .. panel * tile
//$ local function of_token(base, at) return sum(whole and base or base .. " + token", at) end
//$ local from = "halves + tile * " .. tile * of.lines .. (whole and "" or " + token * " .. of.lines)
            const uint32_t *words = $(integers and of_token("integers + tile * " .. integers.pitch, 0) or from);
            $(helper)_block *block = &blocks[now];
            block->z = $(of_token("y + tile * " .. kernels.projection.y_step, 0));
            block->code = $(of_token("code + tile * " .. shape.slots * tile, 0));
            block->score = $(of_token("score + tile * " .. shape.slots * tile, 0)); //$ if score.scored
            block->first = panel * $(panel) / $(shape.tau);
            block->end = $(ends);
//$ for n = 0, parts - 1 do
//$ local token, output = n // 2 * 16, n % 2 * panel
//$ local part = "block->part[" .. n .. "]"
            $(part).starts = $(of_token("starts + tile * " .. tile, token)); //$ if integers and integers.starts
//$ if integers then
            $(part).units = $(of_token("units + tile * " .. integers.units_pitch, token));
            $(part).scales = $(sum("weights->" .. weights_of .. "_scales + " .. first .. " * " .. panel, output));
//$ end
            $(part).bias = $(sum("weights->projection_bias + " .. first .. " * " .. panel, output));
//$ if period then
//$ local row = "(" .. sum(first .. " * " .. panel, output) .. ")" .. (period == shape.bits and "" or " % " .. period)
//$ local x_at = of_token("x + tile * " .. x_step, token) .. " + " .. row .. " * " .. tile
            $(part).x = $(some_apart and row .. " < " .. shape.d .. " ? " .. x_at .. " : NULL" or x_at);
            $(part).residual = weights->residual + $(row); //$ if residual == "vector"
//$ end
            $(part).y = $(of_token(to, output * tile + token));
//$ end
            $(isa.tile_zero(n)); //$ for n = 0, parts * tiles_of_sums - 1
            for (size_t k = 0; k < $(of.lines); k += $(depth)) {
//$ if not splits and isa.prefetch_l2 then
                if (tile == 0 && panel + 4 <= $(of.panels)) /* the next panels come from L3 */
                    for (size_t n = 0; n < 256; n += 16) {
                        $(isa.prefetch_l2("left", "k * 16 + " .. 2 * of.panel_words .. " + n"));
                        $(isa.prefetch_l2("right", "k * 16 + " .. 2 * of.panel_words .. " + n"));
                    }
//$ end
//$ if splits then
                $(isa.tile_load(4, "words", "k * " .. tile, 4 * tile));
                $(isa.tile_load(5, "words", "(k + 16) * " .. tile, 4 * tile));
                $(isa.tile_load(6, "bytes", "k * " .. panel, 4 * panel));
                $(isa.tile_load(7, "bytes", "(k + 16) * " .. panel, 4 * panel));
                $(isa.tile_dot_signed(0, 4, 6));
                $(isa.tile_dot_i8(1, 4, 7));
                $(isa.tile_dot_u8(1, 5, 6));
                $(isa.tile_dot_unsigned(2, 5, 7));
//$ else
//$ for group = 0, groups - 1 do
//$ local at = integers and sum("k * " .. tile, group * 16) or sum("k", group * 16 * of.lines)
                $(isa.tile_load(4 + group, "words", at, 4 * (integers and tile or of.lines)));
//$ end
                $(isa.tile_load(6, "left", "k * " .. panel, 4 * panel));
                $(isa.tile_load(7, "right", "k * " .. width, width == panel and 4 * panel or "4 * width"));
//$ for n = 0, parts - 1 do
                $(isa[of.word](n, 4 + n // 2, 6 + n % 2));
//$ if (n + 1) % (parts // slots) == 0 then
                for (size_t n = 0; n < $((most + slots * steps - 1) // (slots * steps)) && done < pieces; ++n, ++done)
                    $(work);
//$ end
//$ end
//$ end
//$ if splits then
                for (size_t n = 0; n < $((most + steps - 1) // steps) && done < pieces; ++n, ++done)
                    $(work);
//$ end
            }
            $(isa.tile_store(n, "sums[now]", n * 16, 64)); //$ for n = 0, parts * tiles_of_sums - 1
            done = 0;
            pieces = $(parts) + $(groups) * (block->end - block->first);
            now = 1 - now;
        }
    }
    $(isa.tile_release());
    for (; done < pieces; ++done)
        $(work);
}
