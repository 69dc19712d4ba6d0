//$ takes turn, position
//$ -- Makes `cosine` and `sine` the angles of a position.
//$ local pairs = names.constant("ROPE_PAIRS")
//$ if shape.rope.digits then
    float cosine[$(pairs)], sine[$(pairs)];
    $(turn)_angles_$(shape.rope.half)(layer->cosines, layer->sines, $(position), cosine, sine);
//$ else
    const float *cosine = layer->cosines + $(position) * $(pairs);
    const float *sine = layer->sines + $(position) * $(pairs);
//$ end
