// Runs a bundle's self-test in WebAssembly, then one token on a painted stack, which is the lowest part of memory.
const fs = require('fs');
const { exports: program } = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(process.argv[2])), {});

console.log('mismatches', program.run_selftest());
const top = program.__stack_pointer.value;
const stack = new Uint8Array(program.memory.buffer, 0, top);
stack.fill(0xa5);
if (program.run_bind() !== 0) process.exit(1);
program.run_token();
const first = stack.findIndex((byte) => byte !== 0xa5);
console.log('stack', first < 0 ? 0 : top - first);
