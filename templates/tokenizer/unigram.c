//$ takes facts, float_sums
/* A place in a word: the best way to it from the word's beginning. */
typedef struct {
    $(facts.real) score; /* sum of its pieces' */
    uint32_t from;  /* where its last piece begins, $(names.macro("NONE")): there is no way; later the end of the piece that begins here */
    uint32_t id;    /* that piece */
} $(model)_place;

/* Splits word[bytes] into the pieces with the greatest sum of scores; of equal ones, the way whose last piece is the longest.
//$ local rounded = facts.real == "float" and " Sums are compared before they are rounded, as SentencePiece does." or ""
   Characters that are no piece have the score of unknown ones.$(rounded) */
static int $(model)_pieces(const $(names.weights) *weights, const unsigned char *word, size_t bytes, $(model)_ids *ids)
{
    $(model)_place *place = ($(model)_place *) (void *) ids->room;
    const uint32_t *trie = weights->pieces;
    uint32_t to, from, id;
    size_t at, length;

    if (ids->room_bytes / sizeof *place <= bytes)
        return $(names.macro("ERROR_SCRATCH"));
    for (at = 0; at <= bytes; ++at)
        place[at].from = $(names.macro("NONE"));
    place[0].score = 0;

    for (at = 0; at < bytes; at += length) {
        const $(facts.real) score = place[at].score;
        uint32_t node = 0;
        int known = 0;
        (void) $(model)_character(word + at, bytes - at, &length);
        for (size_t end = at; end < bytes;) {
            node = $(model)_child(trie, node, word[end++]);
            if (node == $(names.macro("NONE")))
                break;
            id = trie[3 * (size_t) node + 2];
            if (id != $(names.macro("NONE"))) {
//$ if float_sums then
                /* sum + lost is exactly own + score (Knuth's two-sum), so that the comparison needs no double */
                const float own = weights->scores[id], sum = own + score, part = sum - score;
                const float lost = (score - (sum - part)) + (own - part), best = place[end].score;
                if (place[end].from == $(names.macro("NONE")) || sum > best || (sum >= best && lost > 0.0f)) {
                    place[end].score = sum;
//$ else
                const double sum = (double) weights->scores[id] + score;
                if (place[end].from == $(names.macro("NONE")) || sum > place[end].score) {
                    place[end].score = $(facts.real == "float" and "(float) " or "")sum;
//$ end
                    place[end].from = (uint32_t) at;
                    place[end].id = id;
                }
                known |= end == at + length;
            }
        }
        if (!known) {
            const $(facts.real) sum = weights->scores[$(facts.pieces)] + score;
            $(model)_place *end = place + at + length;
            if (end->from == $(names.macro("NONE")) || sum > end->score) {
                end->score = sum;
                end->from = (uint32_t) at;
                end->id = $(names.macro("NONE"));
            }
        }
    }

    /* turn the way round */
    to = (uint32_t) bytes;
    id = place[to].id;
    for (from = place[to].from;;) {
        const uint32_t before = place[from].from, its_id = place[from].id;
        place[from].from = to;
        place[from].id = id;
        if (from == 0)
            break;
        to = from;
        from = before;
        id = its_id;
    }

    for (at = 0, ids->after_unknown = 0; at < bytes; at = place[at].from) {
        if (place[at].id == $(names.macro("NONE")))
            $(model)_put_unknown($(facts.byte_fallback and "weights, word + at, place[at].from - at, " or "")ids);
        else
            $(model)_put(place[at].id, ids);
    }
    return 0;
}
