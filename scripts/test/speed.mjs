// Prints how long this machine takes for a fixed calculation, so that times of tests on different machines compare.
const ROUNDS = 300_000_000;
const started = performance.now();
let value = 0;
for (let round = 0; round < ROUNDS; round++) value = (Math.imul(value, 1_103_515_245) + 12_345 + round) | 0;
const milliseconds = Math.round(performance.now() - started);
console.log(`Speed of this machine: ${milliseconds} ms for a fixed calculation (${value}).`);
