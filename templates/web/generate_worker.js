//$ takes
// Runs the model beside the page, which never waits for it: a prompt in, text out as it is made.
import { load } from './$(names.script)';

const pause = 40; // ms between messages, so that a fast model does not flood the page
let model, stopped = false;

async function write({ prompt, temperature, most }) {
    stopped = false;
    let text = '', tokens = 0, first = 0, told = performance.now();
    const parts = model.generate(prompt, { temperature, most });
    let part = parts.next();
    for (; !part.done; part = parts.next()) {
        const now = performance.now();
        first ||= now; // reading the prompt does not count
        text += part.value;
        tokens += 1;
        if (now - told < pause) continue;
        postMessage({ text });
        [text, told] = ['', now];
        await new Promise((resolve) => setTimeout(resolve)); // hears of `stop`
        if (stopped) break;
    }
    const seconds = (performance.now() - first) / 1000;
    const full = part.done && part.value === 'context' ? model.context : 0;
    postMessage({ text, tokens, rate: seconds > 0 ? (tokens - 1) / seconds : 0, full, done: true });
}

onmessage = ({ data }) => {
    stopped = true;
    if (data.prompt !== undefined) write(data).catch(({ message }) => postMessage({ error: message }));
};

load({ progress: (share) => postMessage({ share }) }).then(
    (loaded) => {
        model = loaded;
        postMessage({ ready: true });
    },
    ({ message }) => postMessage({ error: message }),
);
