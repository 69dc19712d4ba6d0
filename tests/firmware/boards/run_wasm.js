// Runs a bundle's self-test in WebAssembly and then one token, each on a painted stack, which is the lowest part of memory.
const fs = require('fs');
const { exports: program } = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(process.argv[2])), {});

const top = program.__stack_pointer.value;
const stack = new Uint8Array(program.memory.buffer, 0, top);

// The result of run(), and how much of the stack it wrote to.
function painted(run) {
  stack.fill(0xa5);
  const result = run();
  const first = stack.findIndex((byte) => byte !== 0xa5);
  return [result, first < 0 ? 0 : top - first];
}

const [wrong, selftest] = painted(program.run_selftest);
console.log('mismatches', wrong + program.run_others());
console.log('selftest', selftest);
const [bound, deepest] = painted(() => program.run_bind() || program.run_token());
if (bound) process.exit(1);
console.log('stack', deepest);
