//$ takes
// Runs the model beside the page, which never waits for it: lines and a query in, rankings out.
import { load } from './$(names.script)';

const together = 8; // lines a call: between calls the worker hears of a new query
const shown = 50; // lines of a ranking
const vectors = new Map(); // by text
let lines = [], query = '', changed = false, busy = false;
let model, asked, wanted; // the vector `wanted` of the query `asked`

// The cosine of the angle between two vectors; 0 for one without direction.
function similarity(a, b) {
    let [ab, aa, bb] = [0, 0, 0];
    for (let i = 0; i < a.length; ++i) {
        ab += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    return aa > 0 && bb > 0 ? ab / Math.sqrt(aa * bb) : 0;
}

function rank() {
    if (asked !== query) [asked, wanted] = [query, query === '' ? null : model.encode(query)];
    const known = lines.filter((line) => vectors.has(line));
    const ranking = wanted ? known.map((line) => ({ line, score: similarity(wanted, vectors.get(line)) })) : [];
    ranking.sort((a, b) => b.score - a.score);
    postMessage({ ranking: ranking.slice(0, shown), known: known.length, all: lines.length });
}

// Encodes what is new, a few lines at a time, and ranks what is known.
async function work() {
    if (busy || !model) return;
    busy = true;
    try {
        for (;;) {
            const next = lines.filter((line) => !vectors.has(line)).slice(0, together);
            if (next.length === 0 && !changed) break;
            const rows = model.encode_batch(next);
            next.forEach((line, i) => vectors.set(line, rows.subarray(model.width * i, model.width * (i + 1))));
            changed = false;
            rank();
            await new Promise((resolve) => setTimeout(resolve)); // messages are heard
        }
    } catch ({ message }) {
        postMessage({ error: message });
    }
    busy = false;
}

onmessage = ({ data }) => {
    if (data.lines) lines = [...new Set(data.lines)];
    query = data.query ?? query;
    changed = true;
    work();
};

load({ progress: (share) => postMessage({ share }) }).then(
    (loaded) => {
        model = loaded;
        work();
    },
    ({ message }) => postMessage({ error: message }),
);
