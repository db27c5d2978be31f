import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ResultDirectory } from '../../src/static/compression/result-directory.ts';
import { makeFolder } from './fixture.ts';

it('the results of several processes together stay near the limit of their directory', async () => {
  const path = makeFolder({});
  const limit = 100_000;
  const processes = Array.from({ length: 6 }, () => new ResultDirectory(path, limit));
  let largest = 0;
  for (let i = 0; i < 600; i++) {
    await processes[i % 6]?.write(`400-${`${i}`.padEnd(27, '_')}-br11.1`, Buffer.alloc(1000));
    const sizes = readdirSync(path).map((name) => statSync(join(path, name)).size);
    largest = Math.max(
      largest,
      sizes.reduce((sum, size) => sum + size, 0),
    );
  }
  expect(largest).toBeGreaterThan(limit / 2);
  expect(largest).toBeLessThan(limit * 1.5);
});
