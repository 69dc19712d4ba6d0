//$ takes helper, position
//$ -- Makes `cosine` and `sine` the angles of a position.
//$ local pairs = names.constant("ROPE_PAIRS")
//$ if shape.rope.digits then
    float cosine[$(pairs)], sine[$(pairs)];
    $(helper)_angles(layer, $(position), cosine, sine);
//$ else
    const float *cosine = layer->cosines + $(position) * $(pairs);
    const float *sine = layer->sines + $(position) * $(pairs);
//$ end
