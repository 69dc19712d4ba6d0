//$ takes gather, words, isa, helper, sums_type, sums_of_integers, each_sum
//$ -- What the sums of a line of columns begin with, and where they wait.
//$ local inline = names.macro("INLINE")

//$ if sums_of_integers then
/* The sums that wait in from[$(words.columns)]. */
$(inline) $(sums_type) $(helper)_load_sums(const int32_t *from)
//$ else
/* The sums of no rows. */
$(inline) $(sums_type) $(helper)_zero_sums(void)
//$ end
{
    $(sums_type) sums;
//$ for k, name in ipairs(words.sums) do
//$     for n = 0, gather.integers.vectors - 1 do
    sums.$(name)[$(n)] = $(sums_of_integers and k == #words.sums and isa.load_words("from", n * isa.lanes) or isa.index_zero());
//$     end
//$ end
    return sums;
}
//$ if gather.integers.waits then

/* Leaves sums in to[$(words.columns)], where they wait for more rows. */
$(inline) void $(helper)_store_sums(const $(sums_type) *sums, int32_t *to)
{
//$     for n = 0, gather.integers.vectors - 1 do
    $(isa.store_words("to", n * isa.lanes, words.total(each_sum("sums->", "[" .. n .. "]"))));
//$     end
}
//$ end
