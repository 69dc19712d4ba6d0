-- The words of `eliminate`: the projections that a block does without. The first letter is the one whose inverse is
-- merged into the others.
return { "none", "Q", "K", "V", "QP", "KP", "VP", "QKV", "QKVP" }
