//$ takes isa, helper, v, step, i, step_of, of_layer, norm, norms_of_heads, rounds, tiles,
//$ takes cached, cached_from, positioned, layer_weights, lookup_of, kernels_of
//$ -- One step of a block, of the `count` tokens of a chunk from token number `at` of a call on.
//$ local macro = names.constant
//$ local d_in = macro(shape.input == shape.d and "D" or "D_IN")
//$ -- A row of a buffer, and its distance from the next one.
//$ local function row_of(name, token) return sum(name, times(token, step_of(name))) end
//$ local function rows_from(name, token) return row_of(name, token) .. ", " .. step_of(name) end
//$ local function rows(name) return name .. ", " .. step_of(name) end
//$ -- A loop over the elements of all rows at `to`, each `value(load)` of what load(name) is in the row of a buffer.
//$ local function over_rows(to, to_at, width, name, value)
//$     loop(i, "token", 0, nil, 1, function(i)
//$         over_row(i, width, function(i, k, load, store)
//$             local function load_from(from, offset) return load(from, sum("token * " .. step_of(from), offset or 0, k)) end
$(i)$(store(to, sum(to_at, k), value(load_from)));
//$         end, { to = name })
//$     end, { to = "count", braces = width % isa.lanes > 0 })
//$ end
//$ -- Without the factor of 1 compilers would call memcpy.
//$ local function copied(value) return isa.mul(isa.broadcast("one"), value) end
//$ -- The elements of a token that the step writes, as a number and in C.
//$ local width = step.width or shape.d
//$ local width_text = width == shape.d and macro("D") or width == shape.input and d_in or tostring(width)
//$ local weights = shape.rope and "weights"
//$ local attention_scale = shape.unit and of_layer("weights->attention_scale", "ATTENTION_SCALE_LAYER")
//$ local signs = shape.lsh and of_layer("weights->attention_signs", "SIGNS_LAYER")
//$ local attention_shape = shape.shaped and of_layer("weights->attention_shape", "ATTENTION_SHAPE_LAYER")
//$ local attention_scratch = "buffers + chunk * " .. macro("TOKEN_FLOATS")
//$ local unpacked = v.unpacked_at and "count > 1 ? (float *) scratch + " .. macro("UNPACKED_AT") .. " : NULL"
//$ local held = shape.mixed and "positions"
//$ local of_b = step.b_at and macro("LOOKED_OUTPUT")
//$ local has_first = positioned or shape.rope or shape.shaped
//$ -- Keys or values in a buffer, or from `at` on in the block's input or in rows of tables.
//$ local function input(name, at)
//$     return sum(name, at > 0 and macro((shape.qkv and "LOOKED" or "IN") .. (at == shape.q and "_K" or "_V")) or 0)
//$ end
//$ local function each_stretch(i)
$(i)for ($(helper)_stretch s = $(helper)_no_stretch(); $(helper)_next_stretch(offsets, at, count, &s);)
//$ end
//$ -- Keys and values of `count` tokens from `token` on go into the cache at `to`, from position `first` on, of a sequence
//$ -- of `tokens`, nil: of as many as the cache has.
//$ local function append(i, token, to, first, count, tokens)
//$     local last = shape.shifted > 0 and (shape.mixed or not shape.ring) and (tokens or macro("CACHE_POSITIONS"))
//$     local k = sum(input(step.k, step.k_at), times(token, step_of(step.k)))
//$     if shape.lsh then
//$     local v, ends = sum(input(step.v, step.v_at), times(token, step_of(step.v))), shape.shifted > 0 and (tokens or "tokens")
//$     local given = listed(weights, signs, k, step_of(step.k), v, step_of(step.v), to, first, count, ends, attention_scratch)
$(i)$(helper)_append($(given));
//$     elseif shape.from_keys then
$(i)$(helper)_append($(listed(k, step_of(step.k), to, first, count, held)));
//$     else
//$     local v = sum(input(step.v, step.v_at), times(token, step_of(step.v)))
$(i)$(helper)_append($(listed(weights, k, step_of(step.k), v, step_of(step.v), to, first, count, held, last)));
//$     end
//$ end
//$ -- `count` tokens from `token` on, of a sequence of `tokens`, attend to what the cache at `from` has.
//$ local function attend(i, token, from, first, count, tokens)
//$     if shape.lsh then
//$         local k = step.k and input(step.k, step.k_at) .. ", " .. step_of(step.k)
//$         local v = step.v and input(step.v, step.v_at) .. ", " .. step_of(step.v)
//$         local given = listed(weights, signs, rows_from(step.from, token), k, v, from, first, count, not shape.causal and tokens,
//$             step.q_codes, step.k_codes, rows_from(step.to, token), attention_scratch)
$(i)$(helper)_attend($(given));
//$         return
//$     end
//$     local q, y = rows_from(step.from, token), rows_from(step.to, token)
//$     first, tokens = has_first and first, not shape.causal and tokens
//$     local window = shape.full_layers and helper .. "_is_full[layer] ? " .. macro("CACHE_POSITIONS") .. " : " .. shape.window
//$     local made = step.values and listed(
//$         of_layer("weights->v", "V_LAYER"),
//$         shape.type.scaled and of_layer("weights->v_scales", "V_BIAS_LAYER"),
//$         of_layer("weights->v_bias", "V_BIAS_LAYER"),
//$         unpacked
//$     )
//$     local given = listed(weights, attention_scale, attention_shape, made, q, from, first, count, tokens, window, held, y,
//$         attention_scratch)
$(i)$(helper)_attend($(given));
//$ end
//$ local cache = cached("%.0s%s")
//$ local print = {}
//$ function print.norm()
//$     local field = "weights->" .. shape.norms[step.number].word .. "_norm"
//$     local gain = of_layer(field, "D")
//$     local offset = shape.norm.kind == "layernorm" and of_layer(field .. "_offset", "D")
$(i)$(norm(width))($(listed(rows(step.from), gain, offset, rows(step.to), "count")));
//$ end
//$ function print.norm_heads()
//$     local letter = step.to == "q" and "q" or "k"
//$     local gain = shape.head_norms[step.number].gains and of_layer("weights->" .. letter .. "_norm", "HEAD_NORM_LAYER")
//$     local from = sum(input(step.from, step.at), times("token", step_of(step.from)))
//$     local given = listed(from, shape.width, gain, row_of(step.to, "token"), shape.width, width // shape.width)
$(i)for (size_t token = 0; token < count; ++token)
$(i)    $(norms_of_heads[step.number])($(given));
//$ end
//$ function print.copy()
//$     local function value(load) return copied(load(step.from)) end
//$     over_rows(step.to, "token * " .. step_of(step.to), width, width_text, value)
//$ end
//$ -- Inputs and weights of the product `step`, these from the C expression `at` on, of panels of so many words, or all.
//$ local function factors(step, at, words)
//$     local field, letter = "weights->" .. step.map.field, step.map.letter
//$     local function part(of, size) return at and sum(of, times(at, size)) or of end
//$     return listed(
//$         rows(step.from),
//$         part(of_layer(field, letter .. "_LAYER"), words),
//$         shape.type.scaled and part(of_layer(field .. "_scales", letter .. "_BIAS_LAYER"), 32),
//$         part(of_layer(field .. "_bias", letter .. "_BIAS_LAYER"), 32)
//$     )
//$ end
//$ local function multiply(i, step)
//$     local map = step.map
//$     local given = listed(
//$         factors(step),
//$         rows(step.to),
//$         macro(map.letter .. "_INPUTS"),
//$         macro(map.letter .. "_PANELS"),
//$         "count",
//$         unpacked
//$     )
$(i)/* $(map.letter): $(plural(map.inputs, "input")), $(plural(map.outputs, "output")) */
$(i)$(v.names.product)($(given));
//$ end
//$ function print.product() multiply(i, step) end
//$ function print.round()
$(i)$(rounds[step.inputs])_rounded_$(step.inputs)($(rows(step.from)), $(rows(step.rounded)), count);
//$ end
//$ function print.append()
//$     if not shape.sequences then return append(i, 0, cache, "first + at", "count") end
//$     each_stretch(i)
//$     append(i .. "    ", "s.token", cached_from("s.base"), "s.first", "s.count", "s.tokens")
//$ end
//$ function print.attend()
//$     if shape.sequences then
//$         each_stretch(i)
//$         attend(i .. "    ", "s.token", cached_from("s.base"), "s.first", "s.count", "s.tokens")
//$     elseif not step.k or shape.lsh then
//$         attend(i, 0, cache, "first + at", "count", "tokens")
//$     else
$(i)for (size_t token = 0; token < count; token += $(v.queries)) {
$(i)    const size_t some = count - token < $(v.queries) ? count - token : $(v.queries);
//$         append(i .. "    ", "token", cache, "first + at + token", "some")
//$         attend(i .. "    ", "token", cache, "first + at + token", "some")
$(i)}
//$     end
//$ end
//$ -- The FFN of layers that are alike.
//$ local function look_up(i, part)
//$     local ffn = part.plan.shape
//$     local columns = shape.qkv and ": q, k, v and output" or ffn.d_out > shape.d and ", the next block's q, k and v" or ""
$(i)/* LookupFFN: $(plural(ffn.h, "table")), rows of $(ffn.d_out)$(columns) */
$(i)const $(part.plan.names.weights) layer_weights = {
//$     for _, field in ipairs(layer_weights(part)) do
$(i)    $(field),
//$     end
$(i)};
//$     local given, kernels = listed("&layer_weights", step.from, step.to, "count", "scratch"), kernels_of(part)
//$     if kernels then
$(i)if (together <= $(kernels.threshold))
$(i)    $(kernels.few)($(given));
$(i)else
$(i)    $(kernels.many)($(given));
//$     else
$(i)$(lookup_of(part))($(given));
//$     end
//$ end
//$ function print.lookup()
//$     if #step.parts == 1 then return look_up(i, step.parts[1]) end
//$     for n, part in ipairs(step.parts) do
$(i)$(n == 1 and "if (layer < " .. part.count .. ") {" or "} else {")
//$         look_up(i .. "    ", part)
//$     end
$(i)}
//$ end
//$ local function activate(i)
//$     if not step.rounded then
$(i)$(helper)_activate($(listed(step.gate, step.to, "count")));
//$     else
$(i)for (size_t token = 0; token < count; ++token) {
$(i)    $(helper)_activate($(listed(step.gate and row_of(step.gate, "token"), row_of(step.to, "token"), 1)));
$(i)    $(rounds[step.inputs])_rounded_$(step.inputs)($(rows_from(step.to, "token")), $(rows_from(step.rounded, "token")), 1);
$(i)}
//$     end
//$ end
//$ function print.activate()
//$     if not (tiles and step.of) then return activate(i) end
//$     local map, words = step.of.map, step.of.words
//$     local panels, gate = macro(map.letter .. "_PANELS"), step.of_gate
//$     local stored = shape.rounded.integers and rows(step.to)
//$     local given = listed(factors(step.of), step.gate, stored, step.rounded, words, gate and "panel, end" or panels, "count")
//$     local both = gate and gate.map.letter .. ", " or ""
$(i)if (count >= $(v.product.tiles.from)) {
//$     if gate then
$(i)    const size_t share = $(v.product.tiles.gates) / count; /* panels at a time, so that their gates stay in L2 */

//$     end
$(i)    /* $(both)$(map.letter): $(plural(map.inputs, "input")), $(plural(map.outputs, "output")), activated meanwhile */
//$     if gate then
//$         local own, inputs = factors(gate, "panel", 32 * words), macro(gate.map.letter .. "_INPUTS")
//$         local of_gate = listed(own, rows(step.gate), inputs, "end - panel", "count")
$(i)    for (size_t panel = 0, end; panel < $(panels); panel = end) {
$(i)        end = $(panels) - panel < share ? $(panels) : panel + share;
$(i)        $(v.names.product)($(of_gate));
$(i)        $(helper)_hidden_by_tiles($(given));
$(i)    }
//$     else
$(i)    $(helper)_hidden_by_tiles($(given));
//$     end
//$     if shape.rounded.integers then
$(i)    $(rounds[step.inputs])_rounded_measured_$(step.inputs)($(rows(step.to)), $(rows(step.rounded)), count);
//$     end
$(i)} else {
//$     if gate then multiply(i .. "    ", gate) end
//$     multiply(i .. "    ", step.of)
//$     activate(i .. "    ")
$(i)}
//$ end
//$ function print.add()
//$     local skipped = step.a == "in" and shape.projected and macro("IN_SKIPPED") or 0
//$     local function added(load) return isa.add(load(step.a, skipped), load(step.b, of_b)) end
//$     over_rows(step.to, "token * " .. step_of(step.to), shape.d, macro("D"), added)
//$ end
//$ function print.sum()
//$     each_stretch(i)
$(i)    for (size_t done = 0, some; done < s.count; done += some) {
$(i)        const size_t token = s.token + done, before = (at + token) % $(macro("SUMS_TOKENS"));
$(i)        float *row = y + (s.sequence + (at + token) / $(macro("SUMS_TOKENS"))) * $(macro("SUMS_PITCH"));

$(i)        some = s.count - done < $(macro("SUMS_TOKENS")) - before ? s.count - done : $(macro("SUMS_TOKENS")) - before;
$(i)        $(helper)_sum_rows($(rows_from(step.a, "token")), some, row);
//$     if step.from then
$(i)        $(helper)_sum_hidden($(rows_from(step.from, "token")), some, row + $(macro("SUMS_HIDDEN_AT")));
//$     end
$(i)    }
//$ end
//$ function print.output()
//$     local function output(load)
//$         return step.from and copied(load(step.from)) or isa.add(load(step.a), load(step.b, of_b))
//$     end
//$     over_rows("y", "(at + token) * " .. macro("D"), shape.d, macro("D"), output)
//$ end
//$ print[step.op]()
