import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { staticFiles } from '../../middleware/static.ts';
import { createBreaker } from '../../src/static/cache/circuit-breaker.ts';
import { recheckOf } from '../../src/static/cache/is-unchanged-sync.ts';
import { isKernelCached, localDeviceOf } from '../../src/static/cache/local-device.ts';
import type { Identity } from '../../src/static/file/file-version.ts';
import type { Dependency } from '../../src/static/file/resolve-file.ts';
import { bare, get, listen, makeFolder, raw } from './fixture.ts';

const TMPFS = 0x01021994;
const folder = makeFolder({ 'a.txt': 'a', 'b.txt': 'b' });
const { dev } = statSync(folder, { bigint: true });
const dependencyOf = (path: string): Dependency => ({
  path,
  identity: statSync(path, { bigint: true, throwIfNoEntry: false }),
});

describe('file systems', () => {
  it.each([
    ['ext4', 0xef53, true],
    ['xfs', 0x58465342, true],
    ['btrfs', 0x9123683e, true],
    ['tmpfs', TMPFS, true],
    ['overlayfs', 0x794c7630, true],
    ['NFS', 0x6969, false],
    ['SMB', 0xff534d42, false],
    ['FUSE', 0x65735546, false],
    ['9p', 0x01021997, false],
    ['Ceph', 0x00c36400, false],
    ['proc', 0x9fa0, false],
    ['something unknown', 0x12345678, false],
  ])('%s', (_name, type, cached) => {
    expect(isKernelCached(type, 'linux')).toBe(cached);
    // Elsewhere the numbers mean something else.
    for (const platform of ['darwin', 'win32', 'freebsd'] as const) {
      expect(isKernelCached(type, platform)).toBe(false);
    }
  });

  it('are asked for the device of a root', () => {
    const cached = isKernelCached(statfsSync(folder).type, process.platform);
    expect(localDeviceOf(folder)).toBe(cached ? dev : undefined);
    expect(localDeviceOf('/proc')).toBeUndefined();
    expect(localDeviceOf(`${folder}/none`)).toBeUndefined();
  });
});

describe('a look on the loop', () => {
  const changed = (name: string): Dependency => {
    const dependency = dependencyOf(`${folder}/${name}`);
    appendFileSync(dependency.path, 'more');
    return dependency;
  };
  const gone = (): Dependency => {
    writeFileSync(`${folder}/gone.txt`, '');
    const dependency = dependencyOf(`${folder}/gone.txt`);
    rmSync(dependency.path);
    return dependency;
  };
  const come = (): Dependency => {
    const dependency = dependencyOf(`${folder}/come.txt`);
    writeFileSync(dependency.path, '');
    return dependency;
  };

  it.each([
    ['a file that is as it was', () => [dependencyOf(`${folder}/a.txt`)], true],
    [
      'a name that is still free',
      () => [dependencyOf(`${folder}/a.txt`), dependencyOf(`${folder}/none`)],
      true,
    ],
    ['a file that changed', () => [changed('b.txt')], false],
    ['a file that went', () => [gone()], false],
    ['a file that came', () => [dependencyOf(`${folder}/a.txt`), come()], false],
    ['a path that cannot be looked at', () => [dependencyOf(`${folder}/a.txt`), tooLong()], false],
  ])('tells %s', (_name, dependencies, fresh) => {
    expect(recheckOf(dependencies(), dev)?.()).toBe(fresh);
  });
  const tooLong = (): Dependency => ({ path: `${folder}/${'x'.repeat(300)}`, identity: undefined });

  it.each([
    '2001-02-03 04:05:06.123456789Z',
    '2026-11-21 20:33:02.999999999Z',
    '2038-01-19 03:14:08.000000001Z',
    '1969-12-31 23:59:59.000000001Z',
    '1960-05-06 07:08:09.987654321Z',
  ])('knows a file of %s again, and the same a nanosecond later not', (time) => {
    const path = `${folder}/dated.txt`;
    writeFileSync(path, '');
    execFileSync('touch', ['-d', time, path]);
    const dependency = dependencyOf(path);
    expect(recheckOf([dependency], dev)?.()).toBe(true);
    const identity = dependency.identity as Identity;
    const later = { ...identity, mtimeNs: identity.mtimeNs + 1n };
    expect(recheckOf([{ path, identity: later }], dev)?.()).toBe(false);
  });

  it('trusts nothing on another device, or where none is known', () => {
    const dependencies = [dependencyOf(`${folder}/a.txt`)];
    expect(recheckOf(dependencies, dev + 1n)).toBeUndefined();
    expect(recheckOf(dependencies, undefined)).toBeUndefined();
  });
});

describe('the circuit breaker', () => {
  it('leaves looks to threads for ten seconds when a slow one read from a disk', () => {
    let blocks = 100;
    const { allows, record } = createBreaker(() => blocks);
    const look = (began: number, took: number, read: number): boolean => {
      const allowed = allows(began);
      blocks += read;
      if (allowed) record(began, began + took);
      return allowed;
    };
    expect(look(0, 0.005, 0)).toBe(true);
    // Slow, but nothing was read: the process had to wait for its turn.
    expect(look(10, 5, 0)).toBe(true);
    // What was read while nobody looked is not counted.
    blocks += 8;
    expect(look(500, 5, 0)).toBe(true);
    expect(look(1000, 5, 8)).toBe(true);
    expect(look(1006, 0.005, 0)).toBe(false);
    expect(look(11_004, 0.005, 0)).toBe(false);
    expect(look(11_005, 0.005, 8)).toBe(true);
    expect(look(11_006, 0.005, 0)).toBe(true);
  });
});

/** All of the pipelined answers to GETs of `paths`, in their order. */
function pipeline(port: number, paths: readonly string[]): Promise<string[]> {
  const asked = paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const last = 'GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  return raw(port, asked.join('') + last).then((text) =>
    [...text.matchAll(/\r\n\r\n(version \d+)/g)].map((match) => match[1] as string),
  );
}

describe('remembered files', () => {
  const COUNT = 600;
  const root = makeFolder(
    Object.fromEntries(Array.from({ length: COUNT }, (_, index) => [`${index}.txt`, `version ${index}`])),
  );
  const paths = Array.from({ length: COUNT }, (_, index) => `/${index}.txt`);

  it('are all answered, however many are asked for in one turn', async () => {
    const port = await listen(bare(staticFiles(root)));
    const expected = paths.map((_, index) => `version ${index}`);
    for (let round = 0; round < 3; round++) expect(await pipeline(port, paths)).toEqual(expected);
  });

  it('are looked at after all who asked in that turn', async () => {
    const serve = bare(staticFiles(root));
    let change: string | undefined;
    const port = await listen((req: never, res: never) => {
      const { url } = req as IncomingMessage;
      // The second request for a file arrives when it has just changed.
      if (url === change) writeFileSync(root + url, 'version 1000');
      else change = url;
      serve(req, res);
    });
    await pipeline(port, paths.slice(0, 20));
    change = undefined;
    for (const path of paths.slice(0, 20)) {
      const answers = await pipeline(port, [path, path]);
      expect(answers).toEqual(['version 1000', 'version 1000']);
    }
  });
});

it('files on two devices below one root are all answered as they are', async () => {
  const elsewhere = makeFolder({ 'there.txt': '' }, existsSync('/dev/shm') ? '/dev/shm' : tmpdir());
  const root = makeFolder({ 'here.txt': '' });
  symlinkSync(elsewhere, `${root}/mounted`);
  const port = await listen(bare(staticFiles(root, { symlinks: 'follow' })));
  for (let version = 1; version <= 40; version++) {
    for (const path of [`${root}/here.txt`, `${elsewhere}/there.txt`]) {
      writeFileSync(`${path}.new`, `version ${version}`);
      renameSync(`${path}.new`, path);
    }
    for (const path of ['/here.txt', '/mounted/there.txt']) {
      expect((await get(port, path)).text).toBe(`version ${version}`);
    }
  }
});
