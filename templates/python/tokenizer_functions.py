//$ takes error_room

_tokenize = _function("tokenize", ctypes.c_ssize_t, _pointer, ctypes.c_char_p, _size, _pointer, _size, _pointer, _size)
_text_of = _function("text_of", _pointer, _pointer, ctypes.c_int32, _pointer)
_error_room = $(error_room)


def _number(id, end):
    if not 0 <= int(id) < end:
        raise ValueError(f"$(model): id {id}: must be 0 to {end - 1}")
    return int(id)
