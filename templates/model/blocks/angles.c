//$ takes turn, position, of
//$ -- Makes `cosine` and `sine` the angles of a position. of: the struct that has those of all.
//$ local pairs = names.constant("ROPE_PAIRS")
//$ if shape.rope.digits then
    float cosine[$(pairs)], sine[$(pairs)];
    $(turn)_angles_$(shape.rope.half)($(of)->cosines, $(of)->sines, $(position), cosine, sine);
//$ else
    const float *cosine = $(of)->cosines + $(position) * $(pairs);
    const float *sine = $(of)->sines + $(position) * $(pairs);
//$ end
