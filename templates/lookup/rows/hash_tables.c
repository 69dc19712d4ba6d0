//$ takes hash_one, score, vertices
//$ -- Hashes the tables of a token one after the other.
//$ loop("table", 0, shape.h, 1, function(table)
//$ local at = times(table, shape.neighbours)
        $(hash_one)($(sum("z", times(table, shape.tau))),
            $(listed(sum("code", at), score.scored and sum("score", at), vertices)));
//$ end, { braces = false })
