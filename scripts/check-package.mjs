// Checks the packed package with publint.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

const root = fileURLToPath(new URL('..', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const { messages } = await publint({ pkgDir: root, strict: true });
// Bundlers, which set the condition `module`, follow the calls of `require` of a CommonJS module only.
const isMeant = ({ code, path }) => path[1] === '#packages' && code === 'IMPORTS_MODULE_SHOULD_BE_ESM';
const faults = messages.filter((message) => !isMeant(message));
for (const fault of faults) console.log(`package: ${formatMessage(fault, manifest)}`);
console.log(`Package: ${faults.length === 0 ? 'no fault' : `${faults.length} faults`}`);
if (faults.length > 0) process.exitCode = 1;
