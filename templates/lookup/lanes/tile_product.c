//$ takes isa, helper, tile, integers, of, kernels
//$ -- A dense product on a matrix engine: 16 or 32 tokens times 32 outputs at a time, while sums of those before become outputs.
//$ local groups = tile % 32 == 0 and 2 or 1
//$ local parts, panel = 2 * groups, 16
//$ local steps = of.lines // 16
//$ local inputs, sums = integers and "integers" or "halves", integers and "uint32_t" or "float"
//$ local sums_before = "(const " .. sums .. " *) (const void *) (sums[1 - now] + 16 * finished)"
//$ local finish = helper .. "_finish(&part[1 - now][finished], " .. sums_before .. ")"
//$ -- Lines that transpose the vectors row0 … row15 and store them by store(number, name).
//$ local function transposed(store)
//$     local rows = {}
//$     for row = 0, 15 do rows[row + 1] = "row" .. row end
//$     local code, out = isa.transpose(rows)
//$     for _, step in ipairs(code) do
    const $(isa.vector) $(step.name) = $(step.value);
//$     end
//$     for number, name in ipairs(out) do
    $(store(number - 1, name));
//$     end
//$ end

//$ if integers then
/* 16 words of 16 tokens become 16 rows of a token's words, in place; rows of words lie $(tile) apart. */
static void $(helper)_turn(uint32_t *words)
{
    float *rows = (float *) (void *) words;
//$ for row = 0, 15 do
    const $(isa.vector) row$(row) = $(isa.load("rows", row * tile));
//$ end
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
//$ for row = 0, 15 do
    const $(isa.vector) row$(row) = $(isa.load("x", row * tile));
//$ end
//$ transposed(function(number, name) return "first[" .. number .. "] = " .. name end)
    }
//$ for row = 0, 15 do
    const $(isa.vector) row$(row) = $(isa.load("x", (16 + row) * tile));
//$ end
//$ transposed(function(number, name) return isa.store_bf16("words", number * of.lines, "first[" .. number .. "]", name) end)
}
//$ end

/* What becomes of the sums of a tile, [16 tokens][16 outputs]. */
typedef struct {
//$ if integers then
    const uint32_t *starts;
    const float *units, *scales;
//$ end
    float *y;
} $(helper)_part;

/* Sums become outputs, [16 outputs][$(tile)]. */
static void $(helper)_finish(const $(helper)_part *part, const $(sums) *sums)
{
//$ if integers then
    const $(isa.vector) scale = $(isa.load_unaligned("part->scales", 0));
//$ end
//$ for row = 0, 15 do
//$     local value = isa.load("sums", row * 16)
//$     if integers then
//$         local whole = isa.float_of(isa.index_add(isa.load_words("sums", row * 16), isa.index_broadcast("part->starts[" .. row .. "]")))
//$         value = isa.mul(isa.mul(whole, "scale"), isa.broadcast("part->units[" .. row .. "]"))
//$     end
    const $(isa.vector) row$(row) = $(value);
//$ end
    float *y = part->y;
//$ transposed(function(number, name) return isa.store("y", number * tile, name) end)
}

/* $(of.panels) panels of $(panel) outputs of all tiles, by two. Rounded inputs have been turned: 16 tokens by 16 words
   are a tile of the engine.
//$ if of.width < panel then
   Of the last panel $(plural(of.width, "output")) count: what lies behind its words fills it.
//$ end
//$ if of.panels % 2 == 1 then
   The one before the last is computed twice.
//$ end
//$ if integers then
   integers  [tiles][$(of.lines)][$(tile)]; units  [tiles][unit, inverse][$(tile)]; starts  [tiles][$(tile)]
//$ else
   halves    [tiles][$(tile)][$(of.lines)]
//$ end
   w         [panels][$(of.lines)][$(panel)]$(of.width < panel and ", the last one [" .. of.lines .. "][" .. of.width .. "]" or "")
   y         [tiles][$(of.panels * panel)][$(tile)] */
//$ local factors = "const float *restrict scales, const float *restrict units, const uint32_t *restrict starts, "
static void $(helper)_by_tiles(const uint32_t *restrict $(inputs), const uint32_t *restrict w,
    $(integers and factors or "")float *restrict y, size_t tiles)
{
    /* stores of the one do not meet loads of the other at the same place in a page */
    $(integers and isa.index or isa.vector) sums[2][$(parts * 16 + 3)];
    $(helper)_part part[2][$(parts)];
    size_t finished = $(parts), now = 0;

    $(isa.tile_configure());
    for (size_t panel = 0; panel < $(of.panels); panel += 2) {
//$ local first, width = of.panels % 2 == 1 and "first" or "panel", of.width < panel and "width" or panel
//$ if first == "first" then
        const size_t first = panel + 2 > $(of.panels) ? $(of.panels - 2) : panel;
//$ end
//$ if width == "width" then
        const size_t width = $(first) == $(of.panels - 2) ? $(of.width) : $(panel); /* of the second one */
//$ end
        const uint32_t *left = w + $(first) * $(of.panel_words), *right = left + $(of.panel_words);
//$ local i, whole = "            ", tile == 16 * groups
        for (size_t tile = 0; tile < tiles; ++tile)$(whole and " {" or "")
//$ if not whole then
            for (size_t token = 0; token < $(tile); token += $(16 * groups)) {
//$     i = i .. "    "
//$ end
//$ local to = "y + tile * " .. kernels.projection.y_step .. " + " .. first .. " * " .. panel * tile
//$ local function of_token(base, at) return sum(whole and base or base .. " + token", at) end
//$ if integers then
$(i)const uint32_t *x = $(of_token("integers + tile * " .. integers.pitch, 0));
//$ else
$(i)const uint32_t *x = halves + tile * $(tile * of.lines)$(whole and "" or " + token * " .. of.lines);
//$ end
//$ for n = 0, parts - 1 do
//$ local token, output = n // 2 * 16, n % 2 * panel
//$ if integers then
$(i)part[now][$(n)].starts = $(of_token("starts + tile * " .. tile, token));
$(i)part[now][$(n)].units = $(of_token("units + tile * " .. integers.units_pitch, token));
$(i)part[now][$(n)].scales = $(sum("scales + " .. first .. " * " .. panel, output));
//$ end
$(i)part[now][$(n)].y = $(of_token(to, output * tile + token));
//$ end
//$ for n = 0, parts - 1 do
$(i)$(isa.tile_zero(n));
//$ end
$(i)for (size_t k = 0; k < $(of.lines); k += 16) {
//$ for group = 0, groups - 1 do
//$ local at = integers and sum("k * " .. tile, group * 16) or sum("k", group * 16 * of.lines)
$(i)    $(isa.tile_load(4 + group, "x", at, 4 * (integers and tile or of.lines)));
//$ end
$(i)    $(isa.tile_load(6, "left", "k * " .. panel, 4 * panel));
$(i)    $(isa.tile_load(7, "right", "k * " .. width, width == panel and 4 * panel or "4 * width"));
//$ for n = 0, parts - 1 do
$(i)    $(isa[of.word](n, 4 + n // 2, 6 + n % 2));
//$ end
$(i)    for (size_t n = 0; n < $((parts + steps - 1) // steps) && finished < $(parts); ++n, ++finished)
$(i)        $(finish);
$(i)}
//$ for n = 0, parts - 1 do
$(i)$(isa.tile_store(n, "sums[now]", n * 16, 64));
//$ end
$(i)finished = 0;
$(i)now = 1 - now;
$(i:sub(5))}
    }
    $(isa.tile_release());
    for (; finished < $(parts); ++finished)
        $(finish);
}
