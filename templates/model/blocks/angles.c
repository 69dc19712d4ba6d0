//$ takes helper, i, position
//$ -- Makes `cosine` and `sine` the angles of a position.
//$ local pairs = names.constant("ROPE_PAIRS")
//$ if shape.rope.digits then
$(i)float cosine[$(pairs)], sine[$(pairs)];
$(i)$(helper)_angles(layer, $(position), cosine, sine);
//$ else
$(i)const float *cosine = layer->cosines + $(position) * $(pairs);
$(i)const float *sine = layer->sines + $(position) * $(pairs);
//$ end
