//$ takes
// The page: what is typed goes to the worker, its ranking is shown. Texts become text, never HTML.
const at = (id) => document.getElementById(id);
const worker = new Worker('web-worker.js', { type: 'module' });

const say = (text) => {
    if (at('status').textContent !== text) at('status').textContent = text;
};
const send_lines = () => {
    const lines = at('lines').value.split('\n').map((line) => line.trim());
    worker.postMessage({ lines: lines.filter((line) => line !== '') });
};
const send_query = () => worker.postMessage({ query: at('query').value.trim() });

function row({ line, score }) {
    const item = document.createElement('li');
    for (const text of [line, score.toFixed(3)]) item.appendChild(document.createElement('span')).textContent = text;
    item.style.setProperty('--share', Math.max(0, Math.min(1, score)));
    return item;
}

worker.onmessage = ({ data }) => {
    if (data.error) return say(`This does not work: ${data.error}`);
    if (data.share < 1) return say(`Loading the model: ${Math.floor(100 * data.share)} %`);
    if (data.ranking) {
        at('ranking').replaceChildren(...data.ranking.map(row));
        const shown = data.ranking.length < data.known ? `, the first ${data.ranking.length} shown` : '';
        say(data.known < data.all ? `Reading the lines: ${data.known} of ${data.all}` : `${data.all} lines${shown}`);
    }
};
worker.onerror = (event) => say(`This does not work: ${event.message ?? 'the worker cannot be loaded'}`);

say('Loading the model');
at('lines').addEventListener('input', send_lines);
at('query').addEventListener('input', send_query);
send_lines();
send_query();
