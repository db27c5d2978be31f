import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

it('works where no code may be made from strings', async () => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--disallow-code-generation-from-strings', '--import', 'tsx', join(__dirname, 'no-eval.ts')],
    { cwd: resolve(__dirname, '../..') },
  );
  expect(JSON.parse(stdout)).toEqual({ blocked: true, body: '{"data":{"text":"got 3"}}' });
});
