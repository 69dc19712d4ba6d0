//$ takes input, output
/* The layer, with working memory of its own: one for each thread. It grows with the first call of several tokens.
   Copies share weights. */
class model {
public:
    explicit model(const weights &bound) : weights_(bound), scratch_($(names.sizes)()->scratch_bytes_one) {}
    explicit model(const std::string &path) : model(weights(path)) {}

    /* y [tokens][$(shape.d_out)] of x [tokens][$(shape.d)]. */
    void ffn(const $(input) *x, $(output) *y, std::size_t tokens)
    {
        if (tokens > 1 && scratch_.size() < $(names.macro("SCRATCH_BYTES")))
            scratch_ = memory($(names.macro("SCRATCH_BYTES")));
        $(names.ffn)(weights_.get(), x, y, tokens, scratch_.data());
    }
    std::vector<$(output)> ffn(const std::vector<$(input)> &x)
    {
        require(x.size() % $(names.macro("D")) == 0, "x must have $(shape.d) values a token");
        std::vector<$(output)> y(x.size() / $(names.macro("D")) * $(names.macro("D_OUT")));
        ffn(x.data(), y.data(), x.size() / $(names.macro("D")));
        return y;
    }

private:
    weights weights_;
    memory scratch_;
};
