//$ takes
// Runs models of lookupc in WebAssembly. This file is the same for all of them; the module of a model gives it a description:
//
//     name                  what the names of its C functions begin with
//     wasm, blob            its files
//     align, bytes          in bytes: how all in memory is aligned; what blob, weights (where they lie), state and scratch take
//     context               ids of a text at most
//     width or vocab        floats of a vector of an encoder; ids of a decoder
//     around                ids before and behind every text, of these `last` behind it
//     tokenize              bytes that splitting a text takes: factor * its bytes + more; error_room: the code of too many ids
//     ends                  ids that end what a decoder writes

// The model, when it has arrived:
//
//     memory            of WebAssembly
//     at                places in it of what stays there, by name
//     room(bytes)       a place behind those, until again() gives all such places back
//     ids_of(text)      the ids of a text
//     call(what, …)     calls a C function
//     check(what, …)    calls one that returns a status
//
// `fixed`: bytes of what stays in memory beside what about.bytes names. `progress` is called with the share of the weights that has
// arrived; `base` is the URL of the folder.
async function open(about, fixed, { progress = () => {}, base }) {
    const get = async (name) => {
        const answer = await fetch(new URL(name, base));
        if (!answer.ok) throw new Error(`${name}: the server says ${answer.status} ${answer.statusText}`);
        return answer;
    };
    const { instance } = await WebAssembly.instantiateStreaming(get(about.wasm)).catch(async () =>
        WebAssembly.instantiate(await (await get(about.wasm)).arrayBuffer()), // not sent as application/wasm
    );
    const { memory, ...c } = instance.exports;
    const call = (what, ...given) => c[`${about.name}_${what}`](...given);
    const check = (what, ...given) => {
        const status = call(what, ...given);
        if (status !== 0) throw new Error(`${about.name}_${what} returned ${status}`);
    };

    // Memory: what stays, and behind it what a single call takes. It may grow, which ends all arrays over it.
    let end = c.__heap_base.value;
    const room = (bytes) => {
        const at = Math.ceil(end / about.align) * about.align;
        end = at + bytes;
        if (end > memory.buffer.byteLength) memory.grow(Math.ceil((end - memory.buffer.byteLength) / 65536));
        return at;
    };
    const at = {};
    for (const [name, bytes] of Object.entries({ ...about.bytes, ...fixed })) at[name] = room(bytes);
    const stays = end;
    const again = () => (end = stays);

    const reader = (await get(about.blob)).body.getReader();
    let arrived = 0;
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
        const wanted = part.value.subarray(0, about.bytes.blob - arrived);
        new Uint8Array(memory.buffer).set(wanted, at.blob + Math.min(arrived, about.bytes.blob));
        arrived += part.value.length;
        progress(arrived / about.bytes.blob);
    }
    const status = call('bind', at.blob, arrived, at.weights);
    if (status !== 0) throw new Error(`${about.blob}: is not of ${about.wasm}, or damaged (${about.name}_bind returned ${status})`);

    // The ids of a text, with those that belong before and behind it.
    const { factor, more, error_room } = about.tokenize;
    const ids_of = (text) => {
        const bytes = new TextEncoder().encode(text);
        const size = bytes.length * factor + more;
        for (let most = bytes.length + about.around + 16; ; most *= 4) {
            again();
            const [from, ids, work] = [room(bytes.length), room(4 * most), room(size)];
            new Uint8Array(memory.buffer).set(bytes, from);
            const count = call('tokenize', at.weights, from, bytes.length, ids, most, work, size);
            if (count >= 0) return new Int32Array(memory.buffer, ids, count).slice();
            if (count !== -error_room) throw new Error(`a text of ${bytes.length} bytes: ${about.name}_tokenize returned ${count}`);
        }
    };

    return { memory, at, room, again, ids_of, call, check };
}

/** An encoder: { width, encode(text), encode_batch(texts) }. */
export async function open_encoder(about, options) {
    const { memory, at, room, again, ids_of, check } = await open(about, {}, options);
    const { width, context, last } = about;

    // The first ids, as many as the model takes, and those that end a text.
    const cut = (ids) => {
        const kept = ids.slice(0, context);
        if (ids.length > context) kept.set(ids.subarray(ids.length - last), context - last);
        return kept;
    };

    const encode_batch = (texts) => {
        const lists = texts.map((text) => cut(ids_of(text)));
        const rows = lists.flatMap((ids, row) => (ids.length > 0 ? [row] : []));
        const offsets = [0];
        for (const row of rows) offsets.push(offsets.at(-1) + lists[row].length);

        again();
        const [ids, from, y] = [room(4 * offsets.at(-1)), room(4 * offsets.length), room(4 * width * rows.length)];
        rows.forEach((row, i) => new Int32Array(memory.buffer).set(lists[row], ids / 4 + offsets[i]));
        new Uint32Array(memory.buffer).set(offsets, from / 4);
        check('encode_batch', at.weights, ids, from, rows.length, y, at.scratch);

        const vectors = new Float32Array(width * texts.length);
        rows.forEach((row, i) => vectors.set(new Float32Array(memory.buffer, y + 4 * width * i, width), width * row));
        return vectors;
    };

    return { width, encode: (text) => encode_batch([text]), encode_batch };
}

/** A decoder: { context, generate(prompt, { temperature: from 0 on, most: ids, from 1 on, random: a number from 0 to below 1 }) }. What
    ended a text is the generator's return value: 'end' (of the text), 'most', or 'context' (it is full). */
export async function open_decoder(about, options) {
    const fixed = { logits: 4 * about.vocab, step: 8 }; // step: a length of a text
    const { memory, at, room, ids_of, call, check } = await open(about, fixed, options);
    const { context, last, ends } = about;

    // The bytes of an id's text; none for ids that only steer.
    const bytes_of = (id) => {
        const text = call('text_of', at.weights, id, at.step) >>> 0;
        return new Uint8Array(memory.buffer, text, text === 0 ? 0 : new Uint32Array(memory.buffer, at.step, 1)[0]);
    };

    function* generate(prompt, { temperature = 0.8, most = 200, random = Math.random } = {}) {
        if (!(temperature >= 0)) throw new RangeError(`temperature: ${temperature}: must be a number from 0 on`);
        if (!(most >= 1)) throw new RangeError(`most: ${most}: must be a number from 1 on`);
        const all = ids_of(prompt);
        const given = all.subarray(0, all.length - last);
        if (given.length === 0) throw new Error('the prompt is empty');
        if (given.length > context) throw new Error(`the prompt has ${given.length} ids: the model takes ${context}`);
        const ids = room(4 * given.length);
        new Int32Array(memory.buffer).set(given, ids / 4);
        call('start', at.state);
        check('prefill', at.weights, at.state, ids, given.length, at.logits, at.scratch);

        const text = new TextDecoder(); // a character may have its bytes from several ids
        for (let made = 1; ; ++made) {
            const id = draw(new Float32Array(memory.buffer, at.logits, about.vocab), temperature, random);
            if (ends.includes(id)) return 'end';
            const why = made >= most ? 'most' : given.length + made > context ? 'context' : null;
            yield text.decode(bytes_of(id), { stream: why === null });
            if (why !== null) return why;
            check('step', at.weights, at.state, id, at.logits, at.scratch);
        }
    }

    return { context, generate };
}

// An id, drawn by exp(logit / temperature).
function draw(logits, temperature, random) {
    const top = logits.reduce((a, b) => Math.max(a, b));
    if (temperature === 0) return logits.indexOf(top);
    const shares = logits.map((logit) => Math.exp((logit - top) / temperature));
    let left = random() * shares.reduce((a, b) => a + b);
    const id = shares.findIndex((share) => (left -= share) < 0);
    return id < 0 ? logits.indexOf(top) : id;
}
