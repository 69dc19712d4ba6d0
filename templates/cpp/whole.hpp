//$ takes plan, facts
//$ if plan.causal then
/* A sequence of ids with its keys and values. A copy goes on where it is. */
class sequence {
public:
    sequence() : state_($(names.macro("STATE_BYTES"))) { $(names.start)(state_.data()); }
    std::size_t position() const noexcept { return $(names.position)(state_.data()); }

private:
    friend class model;
    memory state_;
};

//$ end
/* The model, with working memory of its own: one for each thread. Copies share weights. */
class model {
public:
    explicit model(const weights &bound) : weights_(bound), scratch_($(names.macro("SCRATCH_BYTES"))) {}
    explicit model(const std::string &path) : model(weights(path)) {}

//$ if plan.causal then
    /* Appends ids, at least one; returns the logits [$(plan.widths.out)] of the last one. */
    std::vector<float> prefill(sequence &to, const std::vector<std::int32_t> &ids)
    {
        require(!ids.empty(), "ids must be at least one");
        std::vector<float> logits($(names.macro("D_OUT")));
        check($(names.prefill)(weights_.get(), to.state_.data(), ids.data(), ids.size(), logits.data(), scratch_.data()));
        return logits;
    }
    /* Appends ids; returns the logits [ids][$(plan.widths.out)] of all of them. */
    std::vector<float> prefill_all(sequence &to, const std::vector<std::int32_t> &ids)
    {
        std::vector<float> logits(ids.size() * $(names.macro("D_OUT")));
        check($(names.prefill_all)(weights_.get(), to.state_.data(), ids.data(), ids.size(), logits.data(), scratch_.data()));
        return logits;
    }
    /* Appends an id; returns its logits [$(plan.widths.out)]. */
    std::vector<float> step(sequence &to, std::int32_t id)
    {
        std::vector<float> logits($(names.macro("D_OUT")));
        check($(names.step)(weights_.get(), to.state_.data(), id, logits.data(), scratch_.data()));
        return logits;
    }
//$ else
//$ local pooled = plan.output.pool
    /* The $(pooled and "vector [" or "vectors [ids][")$(plan.widths.out)] of a sequence of ids. */
    std::vector<float> encode(const std::vector<std::int32_t> &ids)
    {
        std::vector<float> y($(pooled and "" or "ids.size() * ")$(names.macro("D_OUT")));
        check($(names.encode)(weights_.get(), ids.data(), ids.size(), y.data(), scratch_.data()));
        return y;
    }
    /* The same of several sequences, one behind the other. */
    std::vector<float> encode_batch(const std::vector<std::vector<std::int32_t>> &sequences)
    {
        std::vector<std::int32_t> ids;
        std::vector<std::size_t> offsets(1, 0);
        for (const std::vector<std::int32_t> &sequence : sequences) {
            ids.insert(ids.end(), sequence.begin(), sequence.end());
            offsets.push_back(ids.size());
        }
        std::vector<float> y($(pooled and "sequences" or "ids").size() * $(names.macro("D_OUT")));
        check($(names.encode_batch)(
            weights_.get(), ids.data(), offsets.data(), sequences.size(), y.data(), scratch_.data()));
        return y;
    }
//$ end
//$ if facts then

$(include("templates/cpp/tokenizer_calls.hpp"))
//$ end

private:
    weights weights_;
    memory scratch_;
};
