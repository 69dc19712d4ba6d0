//$ takes hash_one, score, lanes, tile, vertices
//$ -- Hashes the tables of a tile one after the other, a vector of its tokens at a time.
//$ local slots = shape.neighbours * tile
//$ loop("table", 0, shape.h, 1, function()
//$ loop("token", 0, tile, lanes, function(token)
            $(hash_one)($(sum("z", token)),
                $(listed(sum("code", token), score.scored and sum("score", token), vertices)));
//$ end, { braces = false })
//$ end, { braces = false,
//$     also = ", z += " .. shape.tau * tile .. ", code += " .. slots
//$     .. (score.scored and ", score += " .. slots or "") })
