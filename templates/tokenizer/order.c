//$ takes
/* Sorts the marks behind each other by their combining classes; those of one class keep their order. */
static size_t $(model)_order(const $(names.weights) *weights, const unsigned char *from, size_t bytes, unsigned char *to, size_t room)
{
    if (bytes > room)
        return $(names.macro("FULL"));
    for (size_t in = 0; in < bytes;) {
        size_t length, end = in, out = in;
        unsigned last = 0, sorted = 1;

        /* the marks from here on; one character at least */
        do {
            const unsigned order = $(model)_property(weights->orders_pages, weights->orders,
                $(model)_character(from + end, bytes - end, &length));
            if (order == 0 && end > in)
                break;
            sorted &= order >= last;
            last = order;
            end += length;
        } while (last != 0 && end < bytes);
        if (sorted) {
            $(model)_copy(from + in, end - in, to + in);
            in = end;
            continue;
        }

        /* one class after the other: there are few */
        for (unsigned wanted = 0; out < end;) {
            unsigned next = 256;
            for (size_t k = in; k < end; k += length) {
                const unsigned order = $(model)_property(weights->orders_pages, weights->orders,
                    $(model)_character(from + k, end - k, &length));
                if (order == wanted) {
                    $(model)_copy(from + k, length, to + out);
                    out += length;
                } else if (order > wanted && order < next) {
                    next = order;
                }
            }
            wanted = next;
        }
        in = end;
    }
    return bytes;
}
