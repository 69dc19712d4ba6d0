//$ takes web, context, ends
//$ if ends ~= "" then
    const ends = [$(ends)]; // ids behind a text
//$ end
    // The bytes of an id's text; none for ids that only steer.
    const bytes_of = (id) => {
        const at = c.$(names.text_of)(weights, id, step) >>> 0;
        return new Uint8Array(memory.buffer, at, at === 0 ? 0 : new Uint32Array(memory.buffer, step, 1)[0]);
    };
    const check = (status) => {
        if (status !== 0) throw new Error(`$(model) returned ${status}`);
    };

    /** Text behind the prompt, in parts as they are made: at most `most` ids, to the end of the text or of the model's $(context) ids.
        At temperature 0 always the likeliest id; `random` gives numbers from 0 up to 1. One text at a time. */
    function* generate(prompt, { temperature = 0.8, most = 200, random = Math.random } = {}) {
        const given = ids_of(prompt)$(web.last > 0 and ".slice(0, -" .. web.last .. ")" or "");
        if (given.length === 0) throw new Error('the prompt is empty');
        if (given.length > $(context)) throw new Error(`the prompt has ${given.length} ids: the model takes $(context)`);
        const ids = room(4 * given.length);
        new Int32Array(memory.buffer).set(given, ids / 4);
        c.$(names.start)(state);
        check(c.$(names.prefill)(weights, state, ids, given.length, logits, scratch));

        const text = new TextDecoder(); // a character may have its bytes from several ids
        for (let made = 1; ; ++made) {
            const id = draw(new Float32Array(memory.buffer, logits, $(shape.vocab)), temperature, random);
//$ if ends ~= "" then
            if (ends.includes(id)) break;
//$ end
            const last = made >= most || given.length + made > $(context);
            yield text.decode(bytes_of(id), { stream: !last });
            if (last) break;
            check(c.$(names.step)(weights, state, id, logits, scratch));
        }
    }

    return { generate };
