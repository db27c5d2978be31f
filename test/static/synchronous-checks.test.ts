/** @tags node */
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
import { tmpdir } from 'node:os';
import { staticFiles } from '../../middleware/static.ts';
import { CircuitBreaker } from '../../src/static/check.ts';
import type { Dependency } from '../../src/static/files.ts';
import { isKernelCached, localDeviceOf, RootDirectory } from '../../src/static/root.ts';
import type { FileVersion } from '../../src/static/version.ts';
import { bare, get, listen, makeFolder, raw } from './fixture.ts';

const TMPFS = 0x01021994;
const folder = makeFolder({ 'a.txt': 'a', 'b.txt': 'b' });
const { dev } = statSync(folder, { bigint: true });
const root = new RootDirectory(folder);
const dependencyOf = (path: string): Dependency => ({
  path,
  version: statSync(path, { bigint: true, throwIfNoEntry: false }),
});

describe('kernel-cached file systems', () => {
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
    ['an unknown type', 0x12345678, false],
  ])('isKernelCached recognizes %s', (_name, type, cached) => {
    expect(isKernelCached(type, 'linux')).toBe(cached);
    // On other platforms the numbers have other meanings.
    for (const platform of ['darwin', 'win32', 'freebsd'] as const) {
      expect(isKernelCached(type, platform)).toBe(false);
    }
  });

  it('localDeviceOf returns the device of a directory on a kernel-cached file system only', () => {
    const cached = isKernelCached(statfsSync(folder).type, process.platform);
    expect(localDeviceOf(folder)).toBe(cached ? dev : undefined);
    expect(localDeviceOf('/proc')).toBeUndefined();
    expect(localDeviceOf(`${folder}/none`)).toBeUndefined();
  });
});

describe('synchronous checks', () => {
  const changed = (name: string): Dependency => {
    const dependency = dependencyOf(`${folder}/${name}`);
    appendFileSync(dependency.path, 'more');
    return dependency;
  };
  const deleted = (): Dependency => {
    writeFileSync(`${folder}/deleted.txt`, '');
    const dependency = dependencyOf(`${folder}/deleted.txt`);
    rmSync(dependency.path);
    return dependency;
  };
  const created = (): Dependency => {
    const dependency = dependencyOf(`${folder}/created.txt`);
    writeFileSync(dependency.path, '');
    return dependency;
  };

  it.each([
    ['an unchanged file', () => [dependencyOf(`${folder}/a.txt`)], true],
    [
      'a name that still does not exist',
      () => [dependencyOf(`${folder}/a.txt`), dependencyOf(`${folder}/none`)],
      true,
    ],
    ['a changed file', () => [changed('b.txt')], false],
    ['a deleted file', () => [deleted()], false],
    ['a created file', () => [dependencyOf(`${folder}/a.txt`), created()], false],
    ['a path whose stat fails', () => [dependencyOf(`${folder}/a.txt`), tooLong()], false],
  ])('the synchronous check detects %s', (_name, dependencies, isUnchanged) => {
    expect(root.isUnchangedSync(dependencies())).toBe(isUnchanged);
  });
  const tooLong = (): Dependency => ({ path: `${folder}/${'x'.repeat(300)}`, version: undefined });

  it.each([
    '2001-02-03 04:05:06.123456789Z',
    '2026-11-21 20:33:02.999999999Z',
    '2038-01-19 03:14:08.000000001Z',
    '1969-12-31 23:59:59.000000001Z',
    '1960-05-06 07:08:09.987654321Z',
  ])('the synchronous check compares the mtime %s to the nanosecond', (time) => {
    const path = `${folder}/dated.txt`;
    writeFileSync(path, '');
    execFileSync('touch', ['-d', time, path]);
    const dependency = dependencyOf(path);
    expect(root.isUnchangedSync([dependency])).toBe(true);
    const version = dependency.version as FileVersion;
    const later = { ...version, mtimeNs: version.mtimeNs + 1n };
    expect(root.isUnchangedSync([{ path, version: later }])).toBe(false);
  });

  it('files on another device, or on an unknown one, have no synchronous check', () => {
    const local = dependencyOf(`${folder}/a.txt`);
    const none = dependencyOf(`${folder}/none`);
    const isLocal = localDeviceOf(folder) !== undefined;
    expect(root.allowsSync([local, none])).toBe(isLocal);
    expect(root.allowsSync([local, dependencyOf('/proc/version')])).toBe(false);
    expect(new RootDirectory('/proc').allowsSync([none])).toBe(false);
  });
});

describe('CircuitBreaker', () => {
  /** Runs a check at a time, which takes `duration` and reads `bytesRead`; returns whether the breaker allows it. */
  function createClock(): (startedAt: number, duration: number, bytesRead: number) => boolean {
    let bytes = 4096;
    const breaker = new CircuitBreaker(() => bytes);
    return (startedAt, duration, bytesRead) => {
      const isAllowed = breaker.allows(startedAt);
      bytes += bytesRead;
      if (isAllowed) breaker.record(startedAt, startedAt + duration);
      return isAllowed;
    };
  }

  it('the circuit breaker stops synchronous checks for 100 ms after a slow one that read from a disk', () => {
    const check = createClock();
    expect(check(0, 0.005, 0)).toBe(true);
    // Slow, but nothing was read: the process was preempted.
    expect(check(10, 5, 0)).toBe(true);
    // Bytes that were read between two checks are not counted.
    check(400, 0.1, 4096);
    expect(check(600, 5, 0)).toBe(true);
    expect(check(1000, 5, 4096)).toBe(true);
    expect(check(1006, 0.005, 0)).toBe(false);
    expect(check(1104, 0.005, 0)).toBe(false);
    expect(check(1105, 0.005, 4096)).toBe(true);
    expect(check(1106, 0.005, 0)).toBe(true);
  });

  it('the circuit breaker doubles the time up to ten seconds while a disk stays slow, and starts again later', () => {
    const check = createClock();
    let now = 5000;
    const pauses: number[] = [];
    for (let round = 0; round < 10; round++) {
      expect(check(now, 5, 4096)).toBe(true);
      const openedAt = now + 5;
      do now++;
      while (!check(now, 0, 0));
      pauses.push(now - openedAt);
    }
    expect(pauses).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
    now += 1500;
    check(now, 5, 4096);
    expect(check(now + 104, 0, 0)).toBe(false);
    expect(check(now + 105, 0, 0)).toBe(true);
  });
});

/** Sends pipelined GET requests and returns the bodies in their order. */
function pipeline(port: number, paths: readonly string[]): Promise<string[]> {
  const requests = paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const last = 'GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  return raw(port, requests.join('') + last).then((text) =>
    [...text.matchAll(/\r\n\r\n(version \d+)/g)].map((match) => match[1] as string),
  );
}

describe('cached files', () => {
  const COUNT = 600;
  const root = makeFolder(
    Object.fromEntries(Array.from({ length: COUNT }, (_, index) => [`${index}.txt`, `version ${index}`])),
  );
  const paths = Array.from({ length: COUNT }, (_, index) => `/${index}.txt`);

  it('staticFiles responds to 600 pipelined requests for different cached files', async () => {
    const port = await listen(bare(staticFiles(root)));
    const expected = paths.map((_, index) => `version ${index}`);
    for (let round = 0; round < 3; round++) expect(await pipeline(port, paths)).toEqual(expected);
  });

  it('staticFiles checks a cached file after the last request of an event-loop iteration has arrived', async () => {
    const serve = bare(staticFiles(root));
    let change: string | undefined;
    const port = await listen((req, res) => {
      const { url } = req;
      // The file changes before its second request arrives.
      if (url === change) writeFileSync(root + url, 'version 1000');
      else change = url;
      serve(req, res);
    });
    await pipeline(port, paths.slice(0, 20));
    change = undefined;
    for (const path of paths.slice(0, 20)) {
      const bodies = await pipeline(port, [path, path]);
      expect(bodies).toEqual(['version 1000', 'version 1000']);
    }
  });
});

it('staticFiles serves the current content of files on two devices below one root', async () => {
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
