//$ takes
// The page: a prompt goes to the worker, and its text is shown as it comes. Texts become text, never HTML.
const at = (id) => document.getElementById(id);
const worker = new Worker('web-worker.js', { type: 'module' });

const say = (text) => {
    if (at('status').textContent !== text) at('status').textContent = text;
};

function writing(is) {
    at('go').disabled = is;
    at('stop').disabled = !is;
}

worker.onmessage = ({ data }) => {
    if (data.error) {
        say(`This does not work: ${data.error}`);
        writing(false);
    } else if (data.share < 1) {
        say(`Loading the model: ${Math.floor(100 * data.share)} %`);
    } else if (data.ready) {
        say('Ready');
        writing(false);
    } else if (data.text !== undefined) {
        at('made').append(data.text);
        if (data.done) {
            const full = data.full > 0 ? `; the context of ${data.full} tokens is full` : '';
            say(`${data.tokens} tokens, ${data.rate.toFixed(1)} tokens/s${full}`);
            writing(false);
        }
    }
};
worker.onerror = (event) => say(`This does not work: ${event.message ?? 'the worker cannot be loaded'}`);

say('Loading the model');
at('temperature').addEventListener('input', () => {
    at('degrees').value = Number(at('temperature').value).toFixed(1);
});
at('form').addEventListener('submit', (event) => {
    event.preventDefault();
    const prompt = at('prompt').value;
    at('given').textContent = prompt;
    at('made').textContent = '';
    writing(true);
    say('Writing');
    worker.postMessage({ prompt, temperature: Number(at('temperature').value), most: Number(at('most').value) });
});
at('stop').addEventListener('click', () => worker.postMessage({ stop: true }));
