//$ takes
$(include("templates/python/tokenizer_functions.py"))


class Model(_Bound):
    """The tokenizer with its tables. Threads may share it."""
$(include("templates/python/tokenizer_calls.py"))
