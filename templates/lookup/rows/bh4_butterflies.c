//$ takes helper, stage, target
//$ -- The butterflies of a stage, token by token.
    for (size_t token = 0; token < tokens; ++token) {
        $(helper)_$(pass.name)($(target) + token * $(stage.y_step)); //$ for _, pass in ipairs(stage.steps)
    }
