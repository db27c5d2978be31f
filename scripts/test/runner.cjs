// Runs a test file as Jest does, and notes the CPU time of its worker and of the processes that it started.
//
// Each test file loads hundreds of modules in a context of its own. A worker reads, transforms and compiles each of them
// once, with the functions that the first file called: that is a third of the time of a small file.
const { default: circus } = require('jest-circus/runner');
const { readFileSync } = require('node:fs');
const vm = require('node:vm');

module.exports = async (globalConfig, config, environment, runtime, testPath, ...rest) => {
  const before = cpuMilliseconds();
  // Coverage needs the offsets of an unwrapped module.
  if (!globalConfig.collectCoverage) shareModules(config, runtime, testPath);
  const result = await circus(globalConfig, config, environment, runtime, testPath, ...rest);
  keepCompiled();
  return { ...result, cpuMilliseconds: cpuMilliseconds() - before };
};

const { compileFunction } = vm;
const transformed = new Map();
const compiled = new Map();
let scripts = new Map();

function shareModules({ rootDir }, { transformCache }, testPath) {
  // Tests write some of the others.
  const isFixed = (path) =>
    path.startsWith(rootDir) && !/[\\/](?:artifacts|dist)[\\/]|\.test\.ts$/.test(path);
  const { transforms, sourceMaps } = transformCache;
  const transform = transformCache.transform.bind(transformCache);
  transformCache.transform = (path, options) => {
    const known = transformed.get(path);
    if (known === undefined) {
      const code = transform(path, options);
      if (isFixed(path)) transformed.set(path, transforms.get(path) ?? { code });
      return code;
    }
    if (!options?.isInternalModule) transforms.set(path, known);
    if (known.sourceMapPath) sourceMaps.set(path, known.sourceMapPath);
    return known.code;
  };
  vm.compileFunction = (code, parameters, options) => {
    const { filename, importModuleDynamically, parsingContext } = options;
    if (filename === testPath) return compileFunction(code, parameters, options);
    const known = compiled.get(filename);
    const isKnown = known?.code === code;
    const start = `(function (${parameters.join(', ')}) {`;
    const script = new vm.Script(`${start}${code}\n})`, {
      filename,
      columnOffset: -start.length,
      importModuleDynamically,
      cachedData: isKnown ? known.cachedData : undefined,
    });
    if (!isKnown) scripts.set(filename, { code, script });
    return script.runInContext(parsingContext);
  };
}

/** After a file, so that V8 keeps the functions that were called. */
function keepCompiled() {
  for (const [filename, { code, script }] of scripts)
    compiled.set(filename, { code, cachedData: script.createCachedData() });
  scripts = new Map();
}

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
