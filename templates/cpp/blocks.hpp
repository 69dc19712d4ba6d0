//$ takes
//$ local width = names.macro(shape.input == shape.d and "D" or "D_IN")
//$ if shape.causal then
/* Keys and values of a sequence's tokens, and their number. A copy goes on where it is. */
class sequence {
public:
    sequence() : cache_($(names.macro("CACHE_BYTES"))) {}
    std::size_t position() const noexcept { return position_; }
//$ if not shape.ring then
    /* Forgets all tokens from number `position` on. */
    void truncate(std::size_t position)
    {
        require(position <= position_, "a sequence cannot be truncated to more than it has");
        position_ = position;
    }
//$ end

private:
    friend class model;
    memory cache_;
    std::size_t position_ = 0;
};

//$ end
/* The blocks, with working memory of their own: one for each thread. Copies share weights. */
class model {
public:
    explicit model(const weights &bound)
//$ local cache = shape.causal and "" or ", cache_(" .. names.macro("CACHE_BYTES") .. ")"
        : weights_(bound), scratch_($(names.macro("SCRATCH_BYTES")))$(cache) {}
    explicit model(const std::string &path) : model(weights(path)) {}

//$ if shape.causal then
    /* y [tokens][$(shape.d)] of the next tokens x [tokens][$(shape.input)] of a sequence. */
    void prefill(sequence &to, const float *x, float *y, std::size_t tokens)
    {
        check($(names.prefill)(weights_.get(), to.cache_.data(), x, y, to.position_, tokens, scratch_.data()));
        to.position_ += tokens;
    }
    std::vector<float> prefill(sequence &to, const std::vector<float> &x)
    {
        require(x.size() % $(width) == 0, "x must have $(shape.input) values a token");
        std::vector<float> y(x.size() / $(width) * $(names.macro("D")));
        prefill(to, x.data(), y.data(), x.size() / $(width));
        return y;
    }
    /* y [$(shape.d)] of the next token x [$(shape.input)]. */
    void decode(sequence &to, const float *x, float *y)
    {
        check($(names.decode)(weights_.get(), to.cache_.data(), x, y, to.position_, scratch_.data()));
        ++to.position_;
    }
    std::vector<float> decode(sequence &to, const std::vector<float> &x)
    {
        require(x.size() == $(width), "x must have $(shape.input) values");
        std::vector<float> y($(names.macro("D")));
        decode(to, x.data(), y.data());
        return y;
    }
//$ elseif shape.sequences then
    /* y [tokens][$(shape.d)] of x [tokens][$(shape.input)]: sequence s has the tokens number offsets[s] … offsets[s + 1] - 1. */
    std::vector<float> encode_batch(const std::vector<float> &x, const std::vector<std::size_t> &offsets)
    {
        require(x.size() % $(width) == 0, "x must have $(shape.input) values a token");
        require(!offsets.empty() && offsets.front() == 0 && offsets.back() == x.size() / $(width),
            "offsets must go from 0 to the number of tokens");
        std::vector<float> y(x.size() / $(width) * $(names.macro("D")));
        check($(names.encode_batch)(
            weights_.get(), cache_.data(), x.data(), y.data(), offsets.data(), offsets.size() - 1, scratch_.data()));
        return y;
    }
//$ else
    /* y [tokens][$(shape.d)] of a sequence x [tokens][$(shape.input)]. */
    void encode(const float *x, float *y, std::size_t tokens)
    {
        check($(names.encode)(weights_.get(), cache_.data(), x, y, tokens, scratch_.data()));
    }
    std::vector<float> encode(const std::vector<float> &x)
    {
        require(x.size() % $(width) == 0, "x must have $(shape.input) values a token");
        std::vector<float> y(x.size() / $(width) * $(names.macro("D")));
        encode(x.data(), y.data(), x.size() / $(width));
        return y;
    }
//$ end

private:
    weights weights_;
    memory scratch_;
    memory cache_; //$ if not shape.causal
};
