// Runs ONNX Runtime on one thread for tests/rivals/sentence_encoder.py: a request a line, an answer a line, both JSON.
//   { load, name }                        opens a model
//   { name, ids, tokens, calls }          runs it so often; answers CPU time and time of all calls in µs, and with
//                                         calls = 1 the vectors
"use strict";
const folder = process.argv[2];
const ort = require(folder + "/node_modules/onnxruntime-node");
const sessions = {};

async function answer(request) {
    if (request.load) {
        const options = { intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: "sequential", graphOptimizationLevel: "all" };
        sessions[request.name] = await ort.InferenceSession.create(request.load, options);
        return { version: require(folder + "/node_modules/onnxruntime-node/package.json").version };
    }
    const session = sessions[request.name];
    const sentences = request.ids.length / request.tokens;
    const feeds = { ids: new ort.Tensor("int32", Int32Array.from(request.ids), [sentences, request.tokens]) };
    const start = process.cpuUsage(), began = process.hrtime.bigint();
    let results;
    for (let i = 0; i < request.calls; ++i) {
        results = await session.run(feeds);
    }
    const wall = Number(process.hrtime.bigint() - began) / 1e3, used = process.cpuUsage(start);
    const vectors = request.calls === 1 ? Array.from(results[session.outputNames[0]].data) : null;
    return { cpu: used.user + used.system, wall, vectors };
}

async function main() {
    const lines = require("readline").createInterface({ input: process.stdin });
    for await (const line of lines) {
        process.stdout.write(JSON.stringify(await answer(JSON.parse(line))) + "\n");
    }
}

main().catch((error) => {
    process.stderr.write("onnxruntime.js: " + error.message.split("\n")[0] + "\n");
    process.exit(1);
});
