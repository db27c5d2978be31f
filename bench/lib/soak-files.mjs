import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Writes the files that the server of the soak serves. */
export function writeSite(folder) {
  for (const name of ['site', 'uploads']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'site/small.css'), 'body { color: red }\n'.repeat(100));
  writeFileSync(join(folder, 'site/big.bin'), Buffer.alloc(12 << 20, 'x'));
}
