//$ takes web, context
    // The first ids, as many as the model takes$(web.last > 0 and ", and those that end a text" or "").
//$ if web.last > 0 then
    const cut = (ids) => (ids.length > $(context) ? Int32Array.of(...ids.subarray(0, $(context - web.last)), ...ids.subarray(-$(web.last))) : ids);
//$ else
    const cut = (ids) => ids.subarray(0, $(context));
//$ end

    /** The vectors of texts, $(shape.d_out) floats each, zeros for a text without ids. Of a long text the first $(context) ids count. */
    const encode_batch = (texts) => {
        const lists = texts.map((text) => cut(ids_of(text)));
        const rows = lists.flatMap((ids, row) => (ids.length > 0 ? [row] : []));
        const offsets = [0];
        for (const row of rows) offsets.push(offsets.at(-1) + lists[row].length);

        end = fixed;
        const [ids, from, y] = [room(4 * offsets.at(-1)), room(4 * offsets.length), room($(4 * shape.d_out) * rows.length)];
        rows.forEach((row, i) => new Int32Array(memory.buffer).set(lists[row], ids / 4 + offsets[i]));
        new Uint32Array(memory.buffer).set(offsets, from / 4);
        const status = c.$(names.encode_batch)(weights, ids, from, rows.length, y, scratch);
        if (status !== 0) throw new Error(`$(names.encode_batch) returned ${status}`);

        const vectors = new Float32Array($(shape.d_out) * texts.length);
        rows.forEach((row, i) => vectors.set(new Float32Array(memory.buffer, y + $(4 * shape.d_out) * i, $(shape.d_out)), $(shape.d_out) * row));
        return vectors;
    };

    return { width: $(shape.d_out), encode: (text) => encode_batch([text]), encode_batch };
