//$ takes

// An id, drawn by exp(logit / temperature).
function draw(logits, temperature, random) {
    const top = logits.reduce((a, b) => Math.max(a, b));
    if (temperature === 0) return logits.indexOf(top);
    const shares = logits.map((logit) => Math.exp((logit - top) / temperature));
    let left = random() * shares.reduce((a, b) => a + b);
    const id = shares.findIndex((share) => (left -= share) < 0);
    return id < 0 ? logits.indexOf(top) : id;
}
