// Runs a bundle's self-test in WebAssembly, then one token on a painted stack, which is the lowest part of memory.
const fs = require('fs');
const { exports: program } = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(process.argv[2])), {});

console.log('mismatches', program.run_selftest());
if (program.run_bind() !== 0) process.exit(1);
const top = program.__stack_pointer.value;
const stack = new Uint8Array(program.memory.buffer, 0, top);
stack.fill(0xa5);
program.run_token();
console.log('stack', top - Math.max(0, stack.findIndex((byte) => byte !== 0xa5) >= 0 ? stack.findIndex((byte) => byte !== 0xa5) : top));
