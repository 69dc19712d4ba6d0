//$ takes web, align, packed_bytes, struct_bytes, state_bytes, scratch_bytes, facts, context, ends
//$ local search = web.page == "search"
// $(model) in WebAssembly: turns $(search and "texts into vectors" or "a prompt into text that goes on").
//
//     import { load } from './$(names.script)';
//     const model = await load();
//$ if search then
//     const vector = model.encode('Some text.');             // Float32Array of $(shape.d_out)
//     const rows = model.encode_batch(['One.', 'Another.']); // those of several texts, one behind the other
//$ else
//     for (const text of model.generate('Once upon a time')) show(text);
//$ end
//
// It needs web-model.js, $(names.wasm) and $(names.blob) from the folder of this file, and nothing else.
import { $(search and "open_encoder" or "open_decoder") } from './web-model.js';

// What web-model.js has to know of the model; the words are explained there.
const about = {
    name: '$(model)',
    wasm: '$(names.wasm)',
    blob: '$(names.blob)',
    align: $(align),
//$ local state = search and "" or "state: " .. state_bytes .. ", "
    bytes: { blob: $(packed_bytes), weights: $(struct_bytes), $(state)scratch: $(scratch_bytes) },
    context: $(context),
    $(search and "width: " .. shape.d_out or "vocab: " .. shape.vocab),
    around: $(web.around),
    last: $(web.last),
    tokenize: { factor: $(facts.scratch.factor), more: $(facts.scratch.more), error_room: $(web.error_room) },
    ends: [$(ends)], //$ if not search
};

//$ if search then
/** The encoder. Of a text with more than $(context) ids the first ones count; one without ids has a vector of zeros. */
//$ else
/** The decoder. `generate` gives text behind the prompt, in parts as they are made: at most `most` ids, to the end of the text or of the
    model's $(context) ids. At temperature 0 always the likeliest id; `random` gives numbers from 0 up to 1. One text at a time. */
//$ end
export const load = (options) => $(search and "open_encoder" or "open_decoder")(about, { base: import.meta.url, ...options });
