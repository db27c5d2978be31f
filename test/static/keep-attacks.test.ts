/** @tags once slow */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { staticFiles } from '../../middleware/static.ts';
import { mountDisk, withDisks } from '../disks.ts';
import { until } from '../until.ts';
import { bare, get, listen, makeFolder, put } from './fixture.ts';

jest.setTimeout(180_000);

const warnings: string[] = [];
let emit: jest.SpyInstance;
beforeEach(() => {
  warnings.length = 0;
  emit = jest.spyOn(process, 'emitWarning').mockImplementation((text) => void warnings.push(String(text)));
});
afterEach(() => emit.mockRestore());

const running = new Set<ChildProcess>();
afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Serves a build with copies of its assets in a directory. */
const serve = (build: string, directory: string): Promise<number> =>
  listen(bare(staticFiles(build, { html: true, cacheControl: /^\/assets\//, keep: { directory } })));

const namesIn = (folder: string): string[] =>
  existsSync(folder) ? readdirSync(folder).filter((name) => !name.startsWith('.')) : [];
const keeps = (path: string): Promise<void> => until(() => existsSync(path));
const temporaryFiles = (kept: string): string[] =>
  readdirSync(kept).filter((name) => name.startsWith('.keep-'));

interface Server {
  readonly child: ChildProcess;
  readonly port: number;
}

/** Starts a process that serves a build. */
async function start(build: string, kept: string): Promise<Server> {
  const args = [join(__dirname, 'keep-server.mjs'), build, kept];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  running.add(child);
  const ended = once(child, 'exit').then(() => [0]);
  const [line] = await Promise.race([once(child.stdout as NodeJS.ReadableStream, 'data'), ended]);
  return { child, port: Number(line) };
}

async function kill({ child }: Server): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
  running.delete(child);
}

describe('keep on a disk that takes no more files', () => {
  const big = (name: string): Buffer => Buffer.alloc(200_000, name);
  const build = (): string => {
    const names = [1, 2, 3, 4, 5, 6].map((n) => `chunk-${n}.js`);
    return makeFolder({ 'index.html': '', ...Object.fromEntries(names.map((n) => [`assets/${n}`, big(n)])) });
  };

  withDisks(
    'staticFiles serves the build from a full disk, and keeps the rest when there is space',
    async () => {
      const disk = mountDisk('1m');
      try {
        const kept = join(disk.path, 'kept');
        writeFileSync(join(disk.path, 'filler'), Buffer.alloc(400_000));
        const folder = build();
        const port = await serve(folder, kept);
        await until(() => warnings.some((text) => text.includes('ENOSPC')));
        for (const name of namesIn(join(folder, 'assets')))
          expect((await get(port, `/assets/${name}`)).body.equals(big(name))).toBe(true);
        await until(() => temporaryFiles(kept).length === 0);
        const before = namesIn(join(kept, 'assets'));
        for (const name of before)
          expect(readFileSync(join(kept, 'assets', name)).equals(big(name))).toBe(true);
        expect(before.length).toBeLessThan(4);
        rmSync(join(disk.path, 'filler'));
        // A new page plans another scan.
        put(join(folder, 'index.html'), 'new');
        await get(port, '/');
        await until(() => namesIn(join(kept, 'assets')).length > before.length);
      } finally {
        disk.unmount();
      }
    },
  );

  withDisks('staticFiles serves the copies of a read-only disk', async () => {
    const disk = mountDisk('4m');
    try {
      const kept = join(disk.path, 'kept');
      const first = build();
      await serve(first, kept);
      await until(() => namesIn(join(kept, 'assets')).length === 6 && temporaryFiles(kept).length === 0);
      disk.remount('ro');
      const port = await serve(makeFolder({ 'index.html': '', 'assets/new-a.js': 'new' }), kept);
      expect((await get(port, '/assets/chunk-1.js')).body.equals(big('chunk-1.js'))).toBe(true);
      expect((await get(port, '/assets/new-a.js')).text).toBe('new');
      await until(() => warnings.some((text) => text.includes('EROFS')));
    } finally {
      disk.unmount();
    }
  });
});

describe('keep after a process was killed', () => {
  it('staticFiles sends no partial copy, and deletes the files of a killed process after an hour', async () => {
    const folder = makeFolder({
      'build/assets/b-1.js': 'build',
      'kept/assets/whole-1.js': 'whole',
      // Killed while it wrote, and between the name of a copy and the removal of the temporary one.
      'kept/.keep-partial': 'par',
      'kept/.keep-young': 'you',
    });
    const kept = join(folder, 'kept');
    linkSync(join(kept, 'assets/whole-1.js'), join(kept, '.keep-linked'));
    const old = new Date(Date.now() - 2 * 3_600_000);
    for (const name of ['.keep-partial', '.keep-linked']) utimesSync(join(kept, name), old, old);
    const port = await serve(join(folder, 'build'), kept);
    expect((await get(port, '/assets/whole-1.js')).text).toBe('whole');
    expect((await get(port, '/.keep-partial')).status).toBe(404);
    await until(() => temporaryFiles(kept).length === 1);
    expect(temporaryFiles(kept)).toEqual(['.keep-young']);
    expect((await get(port, '/assets/whole-1.js')).text).toBe('whole');
  });

  it('copies are complete or missing after processes were killed while they wrote them', async () => {
    const big = 'x'.repeat(300_000);
    const names = Array.from({ length: 40 }, (_, index) => `assets/chunk-${index}.js`);
    const folder = makeFolder({
      'dist/index.html': '',
      ...Object.fromEntries(names.map((name) => [`dist/${name}`, name + big])),
    });
    const [dist, kept] = [join(folder, 'dist'), join(folder, 'kept')];
    for (let round = 0; round < 6; round++) {
      const servers = await Promise.all([start(dist, kept), start(dist, kept)]);
      await new Promise((done) => setTimeout(done, round * 8));
      await Promise.all(servers.map(kill));
      for (const name of names.filter((each) => existsSync(join(kept, each))))
        expect(readFileSync(join(kept, name), 'utf8') === name + big).toBe(true);
      if (round % 3 === 2) rmSync(kept, { recursive: true, force: true });
    }
    const server = await start(dist, kept);
    for (const name of names) await keeps(join(kept, name));
    rmSync(join(dist, 'assets'), { recursive: true });
    writeFileSync(join(dist, 'index.html'), 'new');
    for (const name of names) expect((await get(server.port, `/${name}`)).text === name + big).toBe(true);
    await kill(server);
  });
});

it('of two builds with other bytes under a name, each is served as it is, and one of them is kept', async () => {
  const bytes = ['a', 'b'].map((letter) => letter.repeat(500_000));
  for (let round = 0; round < 5; round++) {
    const kept = join(makeFolder({}), 'kept');
    const builds = bytes.map((text) => makeFolder({ 'assets/same-1.js': text }));
    const ports = await Promise.all(builds.map((build) => serve(build, kept)));
    const responses = await Promise.all(ports.map((port) => get(port, '/assets/same-1.js')));
    expect(responses.map(({ text }, index) => text === bytes[index])).toEqual([true, true]);
    await keeps(join(kept, 'assets/same-1.js'));
    const first = readFileSync(join(kept, 'assets/same-1.js'), 'utf8');
    expect(bytes).toContain(first);
    await until(() => warnings.some((text) => text.includes('/assets/same-1.js has other bytes')));
    // Once one of them was kept, the name has these bytes forever.
    for (const build of builds) renameSync(join(build, 'assets'), join(build, 'gone'));
    for (const port of ports) expect((await get(port, '/assets/same-1.js')).text === first).toBe(true);
    warnings.length = 0;
  }
});

it('after a rollback, the files of both builds are served', async () => {
  const builds = makeFolder({
    'one/index.html': 'one',
    'one/assets/app-1.js': 'app 1',
    'two/index.html': 'two',
    'two/assets/app-2.js': 'app 2',
  });
  const [current, kept] = [join(builds, 'current'), join(builds, 'kept')];
  const switchTo = (name: string): void => {
    symlinkSync(name, join(builds, 'next'));
    renameSync(join(builds, 'next'), current);
  };
  switchTo('one');
  const port = await serve(current, kept);
  for (const name of ['one', 'two', 'one', 'two']) {
    switchTo(name);
    expect((await get(port, '/')).text).toBe(name);
    const own = name === 'one' ? 1 : 2;
    expect((await get(port, `/assets/app-${own}.js`)).text).toBe(`app ${own}`);
    await keeps(join(kept, `assets/app-${own}.js`));
  }
  for (const own of [1, 2]) expect((await get(port, `/assets/app-${own}.js`)).text).toBe(`app ${own}`);
});

// Three builds with files of their own, one that all have, and one whose bytes differ.
const BUILDS = [0, 1, 2];
const ownNames = (build: number): string[] => [0, 1, 2, 3, 4].map((n) => `chunk-${build}${n}.js`);
const textOf = (name: string, build: number): string =>
  `${name} ${name.startsWith('clash') ? build : ''}`.repeat(8000);
const namesOf = (build: number): string[] => [...ownNames(build), 'common-1.js', 'clash-1.js'];

/** The texts that a name has in any build. */
const textsOf = (name: string): string[] => BUILDS.map((build) => textOf(name, build));

for (const seed of [1, 2])
  withDisks(
    `no file is wrong after deployments, kills and full or read-only disks at random, seed ${seed}`,
    async () => {
      const disk = mountDisk('2m');
      const kept = join(disk.path, 'kept');
      const filler = join(disk.path, 'filler');
      const folder = makeFolder({});
      for (const build of BUILDS) {
        put(join(folder, `build-${build}/index.html`), `build ${build}`);
        for (const name of namesOf(build))
          put(join(folder, `build-${build}/assets/${name}`), textOf(name, build));
      }
      let state = seed;
      const random = (below: number): number => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
        return Math.floor((state / 2 ** 31) * below);
      };
      const deployed = [0, 0];
      const deploy = (index: number, build: number): void => {
        symlinkSync(`build-${build}`, join(folder, 'next'));
        renameSync(join(folder, 'next'), join(folder, `current-${index}`));
        deployed[index] = build;
      };
      const startAt = (index: number): Promise<Server> => start(join(folder, `current-${index}`), kept);
      const verifyCopies = (): void => {
        for (const name of namesIn(join(kept, 'assets')))
          expect([name, textsOf(name).includes(readFileSync(join(kept, 'assets', name), 'utf8'))]).toEqual([
            name,
            true,
          ]);
      };
      try {
        mkdirSync(kept);
        deploy(0, 0);
        deploy(1, 0);
        const servers = await Promise.all([startAt(0), startAt(1)]);
        const ask = async (index: number): Promise<void> => {
          const build = random(3);
          const name = namesOf(build)[random(7)] as string;
          const { status, text } = await get((servers[index] as Server).port, `/assets/${name}`);
          const isOwn = namesOf(deployed[index] as number).includes(name);
          const right = isOwn ? [textOf(name, deployed[index] as number)] : textsOf(name);
          if (isOwn || status !== 404)
            expect([name, status, right.includes(text)]).toEqual([name, 200, true]);
        };
        const actions: ((index: number) => unknown)[] = [
          (index) => deploy(index, random(3)),
          async (index) => {
            await kill(servers[index] as Server);
            servers[index] = await startAt(index);
          },
          () => disk.remount('ro'),
          () => disk.remount('rw'),
          () => {
            disk.remount('rw');
            try {
              for (let size = 512_000; size >= 4000; size /= 2)
                writeFileSync(filler, Buffer.alloc(size), { flag: 'a' });
            } catch {}
          },
          () => {
            disk.remount('rw');
            rmSync(filler, { force: true });
          },
        ];
        for (let step = 0; step < 25; step++) {
          const index = random(2);
          await actions[random(actions.length)]?.(index);
          await get((servers[index] as Server).port, '/');
          for (let i = 0; i < 4; i++) await ask(random(2));
          verifyCopies();
        }
        disk.remount('rw');
        rmSync(filler, { force: true });
        deploy(0, 1);
        await Promise.all(servers.map(kill));
        servers[0] = await startAt(0);
        for (const name of ownNames(1)) await keeps(join(kept, 'assets', name));
        verifyCopies();
        await kill(servers[0]);
      } finally {
        for (const child of running) child.kill('SIGKILL');
        disk.unmount();
      }
    },
  );
