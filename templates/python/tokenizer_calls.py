//$ takes facts

    def tokenize(self, text):
        """The ids (n,), int32, of a text: str, or bytes."""
        text = text.encode() if isinstance(text, str) else bytes(text)
        need = sizes.tokenize_scratch + len(text) * sizes.tokenize_scratch_more
        scratch, room = self._scratch(need), len(text) + 16
        while True:
            ids = numpy.empty(room, numpy.int32)
            count = _tokenize(self._weights, text, len(text), ids.ctypes.data, room, scratch, need)
            if count != -_error_room:
                break
            room *= 2
        _check(-count if count < 0 else 0)
        return ids[:count].copy()

    def text_of(self, id):
        """What an id adds to a text, as bytes."""
        bytes_ = ctypes.c_size_t()
        text = _text_of(self._weights, _number(id, sizes.pieces), ctypes.byref(bytes_))
        return ctypes.string_at(text, bytes_.value)

    def detokenize(self, ids):
        """The text of ids; what is not UTF-8 in it counts as U+FFFD."""
        text = b"".join(self.text_of(id) for id in ids)
        text = text[1:] if text.startswith(b" ") else text //$ if facts.leading_space
        return text.decode("utf-8", "replace")
