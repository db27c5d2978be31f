/** @tags node-lines */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import * as zlib from 'node:zlib';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { staticFiles } from '../../middleware/static.ts';
import { run } from '../run-command.ts';
import { bare, get, listen, makeFolder } from '../static/fixture.ts';

const js = 'export const result = 42;\n'.repeat(400);
const NOISE = Buffer.from(crypto.getRandomValues(new Uint8Array(4000)));

function makeSite(): string {
  return makeFolder({
    'app.js': js,
    'deep/er/style.css': 'a { color: red }\n'.repeat(200),
    'small.js': 'let a = 1;',
    'photo.png': Buffer.alloc(5000),
    'noise.txt': NOISE,
    '.hidden.js': js,
    '.git/config.txt': js,
    '.well-known/security.txt': js,
  });
}

/** The files below a folder whose names end with an extension of compressed copies. */
function copiesBelow(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true }).map(String);
  return names.filter((name) => /\.(?:br|gz|zst|tmp)$/.test(name)).sort();
}

const CODINGS = ['--coding', 'br', '--coding', 'gzip'];
const COPIES = ['.well-known/security.txt', 'app.js', 'deep/er/style.css'].flatMap((name) => [
  `${name}.br`,
  `${name}.gz`,
]);

it('espalier compress writes copies of compressible files with the time and mode of their source', async () => {
  const site = makeSite();
  chmodSync(join(site, 'app.js'), 0o640);
  utimesSync(join(site, 'app.js'), 1e9, 1e9);
  const { code, out, err } = await run('compress', ...CODINGS, site);
  expect([code, err]).toEqual([0, '']);
  expect(copiesBelow(site)).toEqual(COPIES);
  expect(brotliDecompressSync(readFileSync(join(site, 'app.js.br'))).toString()).toBe(js);
  expect(gunzipSync(readFileSync(join(site, 'app.js.gz'))).toString()).toBe(js);
  const { mode, mtimeMs } = statSync(join(site, 'app.js.br'));
  expect([mode & 0o777, mtimeMs]).toEqual([0o640, 1e12]);
  expect(out).toMatch(/^ {2}br {3}3 written, 0 up to date, 2 without gain; \d+ to \d+ bytes/m);
});

it('espalier compress keeps copies that are up to date', async () => {
  const site = makeSite();
  await run('compress', ...CODINGS, site);
  const times = () => COPIES.map((name) => statSync(join(site, name), { bigint: true }).ctimeNs);
  const before = times();
  const { code, out } = await run('compress', ...CODINGS, site);
  expect([code, times()]).toEqual([0, before]);
  expect(out).toMatch(/0 written, 3 up to date/);
});

it('espalier compress replaces copies of earlier versions, and deletes those that give no gain', async () => {
  const site = makeSite();
  await run('compress', ...CODINGS, site);
  writeFileSync(join(site, 'app.js'), js.replaceAll('42', '43'));
  writeFileSync(join(site, 'deep/er/style.css'), NOISE);
  expect((await run('compress', ...CODINGS, '--check', site)).code).toBe(1);
  expect(brotliDecompressSync(readFileSync(join(site, 'app.js.br'))).toString()).toContain('42');
  expect((await run('compress', ...CODINGS, site)).code).toBe(0);
  expect(brotliDecompressSync(readFileSync(join(site, 'app.js.br'))).toString()).toContain('43');
  expect(existsSync(join(site, 'deep/er/style.css.br'))).toBe(false);
  expect((await run('compress', ...CODINGS, '--check', site)).code).toBe(0);
});

it('staticFiles sends the copies that espalier compress has written', async () => {
  const site = makeSite();
  await run('compress', site);
  const port = await listen(bare(staticFiles(site, { precompressed: true })));
  const codings = ['br', 'gzip', ...('zstdCompressSync' in zlib ? ['zstd'] : [])];
  for (const coding of codings) {
    const { headers } = await get(port, '/app.js', { 'Accept-Encoding': coding });
    expect(headers['content-encoding']).toBe(coding);
  }
});

it('espalier compress --check writes nothing and fails if a copy is missing', async () => {
  const site = makeSite();
  const { code, out } = await run('compress', ...CODINGS, '--check', site);
  expect([code, copiesBelow(site)]).toEqual([1, []]);
  expect(out).toMatch(/3 missing or out of date/);
});

it('espalier compress does not follow links', async () => {
  const site = makeSite();
  const outside = makeFolder({ 'x.js': js });
  symlinkSync(outside, join(site, 'linked'));
  symlinkSync(join(outside, 'x.js'), join(site, 'x.js'));
  await run('compress', ...CODINGS, site);
  expect(copiesBelow(outside)).toEqual([]);
  expect(existsSync(join(site, 'x.js.br'))).toBe(false);
});

it('espalier compress reports files that it cannot write, continues with the others, and exits with 1', async () => {
  const site = makeSite();
  mkdirSync(join(site, 'app.js.br'));
  const { code, err } = await run('compress', '--quiet', ...CODINGS, site);
  expect(code).toBe(1);
  expect(err).toMatch(/^espalier: .*app\.js: .*\n$/);
  const again = await run('compress', '--coding', 'br', site);
  expect(again.out).toMatch(/ br +0 written, 2 up to date/);
  expect(copiesBelow(site)).toEqual(COPIES);
});

it.each([
  ['none', 'does not exist'],
  ['app.js', 'is not a directory'],
  ['app.js/none', 'does not exist'],
])('espalier compress writes nothing and exits with 2 if %s is passed, which %s', async (name, reason) => {
  const site = makeSite();
  const path = join(site, name);
  const { code, out, err } = await run('compress', site, path);
  const message = `espalier: ${JSON.stringify(path)} ${reason}; pass the directory of the files, such as dist\n`;
  expect([code, out, err]).toEqual([2, '', message]);
  expect(copiesBelow(site)).toEqual([]);
});

it.each(['--version', '-v'])('espalier %s prints the version of package.json', async (flag) => {
  const { version } = JSON.parse(readFileSync(join(__dirname, '../../package.json'), 'utf8'));
  expect(await run(flag)).toEqual({ code: 0, out: `${version}\n`, err: '' });
});

it('espalier compress writes the same bytes with any number of jobs', async () => {
  const [one, many] = [makeSite(), makeSite()];
  await run('compress', ...CODINGS, '--jobs', '1', one);
  await run('compress', ...CODINGS, '--jobs', '8', many);
  for (const name of COPIES) {
    expect(readFileSync(join(one, name)).equals(readFileSync(join(many, name)))).toBe(true);
  }
});

it.each([
  [[], /no command; expected: compress/],
  [['compres', '.'], /unknown command "compres"; expected: compress/],
  [['compress'], /no directory; pass the directory of the files/],
  [['compress', '--coding', 'deflate', '.'], /unknown coding "deflate"; expected: br, zstd, gzip/],
  [['compress', '--min-bytes', '-1', '.'], /min-bytes/],
  [['compress', '--jobs', '0', '.'], /--jobs is "0"; expected: a whole number from 1/],
  [['compress', '--jobs', '1e3', '.'], /--jobs is "1e3"/],
  [['compress', '--jobs', '1025', '.'], /--jobs is "1025"; expected: a whole number from 1 to 1024/],
  [['compress', '--jobs', '9007199254740991', '.'], /--jobs is "9007199254740991"/],
  [['compress', '--levle', '.'], /Unknown option '--levle'/],
])('espalier %j exits with 2 and explains the mistake', async (args, message) => {
  const { code, out, err } = await run(...args);
  expect([code, out]).toEqual([2, '']);
  expect(err).toMatch(message);
  expect(err).toMatch(/Usage: espalier compress/);
  // A terminal shows the last lines.
  expect(err.trimEnd().split('\n').at(-1)).toMatch(message);
});

it('espalier with an unknown command prints a few lines, which fit into a terminal', async () => {
  const { err } = await run('serve');
  expect(err.split('\n').length).toBeLessThan(10);
  expect(err).toContain('espalier --help');
});

it('espalier --help prints the usage', async () => {
  const { code, out, err } = await run('--help');
  expect([code, err]).toEqual([0, '']);
  expect(out).toMatch(/^Usage: espalier compress/);
});

it.each([
  ['check', '--help'],
  ['help', 'check'],
  ['check', '--documents', 'none.json'],
])('espalier %s %s prints the usage, the options and an example of check only', async (...args) => {
  const { out, err } = await run(...args);
  expect(out + err).toMatch(/Usage: espalier check \[options\]/);
  expect(out + err).toMatch(/--limit <name=n>/);
  expect(out + err).toMatch(/Examples?: espalier check --schema/);
  expect(out + err).not.toMatch(/espalier (?:compress|init)/);
});

it('espalier writes all copies when the reader of its output has ended', async () => {
  const site = makeSite();
  const main = join(__dirname, '../../src/cli/main.ts');
  // A pipe whose reading end is closed before the command writes to it.
  const command = `"${process.execPath}" --import tsx "${main}" compress --coding br "${site}" "${site}" | true; exit \${PIPESTATUS[0]}`;
  const child = spawn('bash', ['-c', command], {
    cwd: join(__dirname, '../..'),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let err = '';
  child.stderr.on('data', (text: Buffer) => {
    err += text;
  });
  const [code] = await once(child, 'close');
  expect([code, err, copiesBelow(site).length]).toEqual([0, '', 3]);
});

it('espalier compress writes copies that the server may read, whatever the umask of the build is', async () => {
  const site = makeFolder({ 'app.js': js });
  chmodSync(`${site}/app.js`, 0o644);
  const umask = process.umask(0o077);
  try {
    expect((await run('compress', ...CODINGS, site)).code).toBe(0);
  } finally {
    process.umask(umask);
  }
  expect(statSync(`${site}/app.js.br`).mode & 0o777).toBe(0o644);
});

it('espalier compress replaces a FIFO in the place of a copy without reading it', async () => {
  const site = makeFolder({ 'app.js': js });
  execFileSync('mkfifo', [`${site}/app.js.br`]);
  expect((await run('compress', ...CODINGS, site)).code).toBe(0);
  expect(brotliDecompressSync(readFileSync(`${site}/app.js.br`)).toString()).toBe(js);
});
