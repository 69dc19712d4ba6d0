// Runs a program of tests/isa/ in WebAssembly.
const fs = require('fs');
let memory;
const board_write = (at) => {
    const bytes = new Uint8Array(memory.buffer);
    process.stdout.write(Buffer.from(bytes.slice(at, bytes.indexOf(0, at))).toString());
};
const board_exit = (status) => process.exit(status);
const code = new WebAssembly.Module(fs.readFileSync(process.argv[2]));
const { exports: program } = new WebAssembly.Instance(code, { env: { board_write, board_exit } });
memory = program.memory;
program.run();
