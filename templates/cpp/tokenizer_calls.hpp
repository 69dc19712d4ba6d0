//$ takes facts
    /* The ids of a text, any bytes. */
    std::vector<std::int32_t> tokenize(const std::string &text) const
    {
        const std::size_t bytes = $(names.macro("TOKENIZE_SCRATCH"))(text.size());
        const memory work(bytes);
        std::vector<std::int32_t> ids(text.size() + 16);
        for (;;) {
            const std::ptrdiff_t count = $(names.tokenize)(
                weights_.get(), text.data(), text.size(), ids.data(), ids.size(), work.data(), bytes);
            if (count == -$(names.macro("ERROR_ROOM"))) {
                ids.resize(2 * ids.size());
                continue;
            }
            check(count < 0 ? static_cast<int>(-count) : $(names.macro("OK")));
            ids.resize(static_cast<std::size_t>(count));
            return ids;
        }
    }
    /* What an id adds to a text. */
    std::string text_of(std::int32_t id) const
    {
        std::size_t bytes = 0;
        const char *text = $(names.text_of)(weights_.get(), id, &bytes);
        require(text != nullptr, "what is no id has no text");
        return std::string(text, bytes);
    }
    /* The text of ids. */
    std::string detokenize(const std::vector<std::int32_t> &ids) const
    {
        std::string text;
        for (const std::int32_t id : ids)
            text += text_of(id);
        return text.empty() || text[0] != ' ' ? text : text.substr(1); //$ if facts.leading_space
        return text; //$ if not facts.leading_space
    }
