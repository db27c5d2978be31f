// Runs a test file as Jest does, and notes the CPU time of its worker and of the processes that it started.
const { default: circus } = require('jest-circus/runner');
const { readFileSync } = require('node:fs');
const vm = require('node:vm');

module.exports = async (...args) => {
  const before = cpuMilliseconds();
  const result = await circus(...args);
  return { ...result, cpuMilliseconds: cpuMilliseconds() - before };
};

// Each test file loads the same hundreds of modules again, in a context of its own. This lets V8 parse them once for each
// worker, which is a tenth of the CPU time of a run.
const { compileFunction } = vm;
const parsed = new Map();
vm.compileFunction = (code, parameters, options) => {
  const known = parsed.get(options.filename);
  if (known?.code === code)
    return compileFunction(code, parameters, { ...options, cachedData: known.cachedData });
  const compiled = compileFunction(code, parameters, { ...options, produceCachedData: true });
  parsed.set(options.filename, { code, cachedData: compiled.cachedData });
  return compiled;
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
