// Fails if the packages of a clone take more disk space or time than its limits.
// Usage: node scripts/check-clone.mjs [seconds that npm ci took]. Heavy packages belong to test/neighbours.
import { lstatSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const MAX_MEGABYTES = 540;
const MAX_SECONDS = 60;
/** The number of packages that a failure lists. */
const LARGEST = 15;

const modules = fileURLToPath(new URL('../node_modules', import.meta.url));
const seconds = Number(process.argv[2] ?? 0);
const sizes = new Map();
const megabytes = Math.ceil(measure(modules) / 1e6);

console.log(
  `node_modules: ${megabytes} MB of ${MAX_MEGABYTES} MB, installed in ${seconds} of ${MAX_SECONDS} s`,
);
if (megabytes > MAX_MEGABYTES || seconds > MAX_SECONDS) {
  const largest = [...sizes].sort(([, a], [, b]) => b - a).slice(0, LARGEST);
  for (const [name, bytes] of largest)
    console.log(`${String(Math.ceil(bytes / 1e6)).padStart(5)} MB  ${name}`);
  process.exitCode = 1;
}

/** Returns the bytes on disk below a folder, and adds them to the package that contains them. */
function measure(folder) {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += measure(path);
    else {
      const { blocks, size } = lstatSync(path);
      bytes += blocks === undefined ? size : blocks * 512;
    }
  }
  const name = relative(modules, folder).replaceAll('\\', '/');
  if (/^(@[^/]+\/)?[^@/][^/]*$/.test(name)) sizes.set(name, bytes);
  return bytes;
}
