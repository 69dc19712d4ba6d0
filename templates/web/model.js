//$ takes web, align, packed_bytes, struct_bytes, state_bytes, scratch_bytes, facts
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
// It needs $(names.wasm) and $(names.blob), from the folder of this file, and nothing else.

/** `progress` is called with the share of the weights that has arrived; `base` is the URL of the folder. */
export async function load({ progress = () => {}, base = import.meta.url } = {}) {
    const get = async (name) => {
        const answer = await fetch(new URL(name, base));
        if (!answer.ok) throw new Error(`${name}: the server says ${answer.status} ${answer.statusText}`);
        return answer;
    };
    const { instance } = await WebAssembly.instantiateStreaming(get('$(names.wasm)')).catch(async () =>
        WebAssembly.instantiate(await (await get('$(names.wasm)')).arrayBuffer()), // not sent as application/wasm
    );
    const { memory, ...c } = instance.exports;

    // Memory: the weights and where they lie, $(search and "" or "the sequence, ")working memory; behind `fixed` what a single call takes.
    let end = c.__heap_base.value;
    const room = (bytes) => {
        const at = Math.ceil(end / $(align)) * $(align);
        end = at + bytes;
        if (end > memory.buffer.byteLength) memory.grow(Math.ceil((end - memory.buffer.byteLength) / 65536));
        return at;
    };
    const blob = room($(packed_bytes));
    const weights = room($(struct_bytes));
//$ if not search then
    const state = room($(state_bytes));
    const logits = room($(4 * shape.vocab));
    const step = room(8); // a length of a text, or an id
//$ end
    const scratch = room($(scratch_bytes));
    const fixed = end;

    const reader = (await get('$(names.blob)')).body.getReader();
    let arrived = 0;
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
        new Uint8Array(memory.buffer).set(part.value.subarray(0, $(packed_bytes) - arrived), blob + Math.min(arrived, $(packed_bytes)));
        arrived += part.value.length;
        progress(arrived / $(packed_bytes));
    }
    const status = c.$(names.bind)(blob, arrived, weights);
    if (status !== 0) throw new Error(`$(names.blob): is not of $(names.wasm), or damaged ($(names.bind) returned ${status})`);

    // The ids of a text$(web.around > 0 and ", with those that belong before and behind it" or "").
//$ local factor, more = facts.scratch.factor, tostring(facts.scratch.more)
    const ids_of = (text) => {
        const bytes = new TextEncoder().encode(text);
        const size = $(factor > 0 and "bytes.length * " .. factor .. " + " .. more or more);
        for (let most = bytes.length + $(web.around + 16); ; most *= 4) {
            end = fixed;
            const [at, ids, work] = [room(bytes.length), room(4 * most), room(size)];
            new Uint8Array(memory.buffer).set(bytes, at);
            const count = c.$(names.tokenize)(weights, at, bytes.length, ids, most, work, size);
            if (count >= 0) return new Int32Array(memory.buffer, ids, count).slice();
            if (count !== -$(web.error_room)) throw new Error(`a text of ${bytes.length} bytes: $(names.tokenize) returned ${count}`);
        }
    };

//$ if search then
$(include("templates/web/encode.js"))
//$ else
$(include("templates/web/generate.js"))
//$ end
}
//$ if not search then
$(include("templates/web/draw.js"))
//$ end
