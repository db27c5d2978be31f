// Runs a test file as Jest does, and notes the CPU time of its worker and of the processes that it started.
const { default: circus } = require('jest-circus/runner');
const { readFileSync } = require('node:fs');

module.exports = async (...args) => {
  const before = cpuMilliseconds();
  const result = await circus(...args);
  return { ...result, cpuMilliseconds: cpuMilliseconds() - before };
};

function cpuMilliseconds() {
  const { user, system } = process.cpuUsage();
  return Math.round((user + system) / 1000) + ofEndedChildren();
}

/** Linux tells in hundredths of a second: proc(5), cutime and cstime. */
function ofEndedChildren() {
  if (process.platform !== 'linux') return 0;
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ');
  return 10 * (Number(fields[13]) + Number(fields[14]));
}
