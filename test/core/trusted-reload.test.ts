/** @tags once slow */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { makeFolder } from '../kit.ts';
import { until } from '../until.ts';
import { serve } from './by-id-service.ts';

const HELLO = 'query Hello { hello }';
const WORLD = { data: { hello: 'world' } };

function file(name: string, content: object): string {
  const path = join(makeFolder(), name);
  writeFileSync(path, JSON.stringify(content));
  return path;
}

function directory(): string {
  const path = join(makeFolder(), 'documents');
  mkdirSync(path);
  writeFileSync(join(path, 'abc.graphql'), HELLO);
  return path;
}

describe('the reload of trusted documents', () => {
  it('graphqlHTTP reads a file again when it is replaced, and keeps the old documents when it is wrong', async () => {
    const path = file('manifest.json', { abc: HELLO });
    const { post, reports } = await serve({ documents: { from: path } });
    const codeOf = async (id: string) => (await post({ id })).code;
    const replaceWith = (text: string): void => {
      writeFileSync(`${path}.new`, text);
      renameSync(`${path}.new`, path);
    };
    const waitFor = async (id: string, code: unknown): Promise<void> => {
      while ((await codeOf(id)) !== code) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    expect(await codeOf('def')).toBe('DOCUMENT_NOT_FOUND');
    replaceWith(JSON.stringify({ def: HELLO, old: '{ old }' }));
    await waitFor('def', undefined);
    expect(await codeOf('abc')).toBe('DOCUMENT_NOT_FOUND');
    expect(reports.map(({ message }) => message)).toEqual([
      expect.stringContaining('old: Cannot query field'),
    ]);

    replaceWith('{ "ghi": ');
    await until(() => reports.length === 2);
    expect(reports[1]?.message).toMatch(
      /^The trusted documents of .*manifest\.json were not reloaded: .*JSON/,
    );
    expect(await codeOf('def')).toBe(undefined);

    rmSync(path);
    await until(() => reports.length === 3);
    expect(reports[2]?.message).toMatch(/ENOENT/);
    expect(await codeOf('def')).toBe(undefined);

    replaceWith(JSON.stringify({ abc: HELLO }));
    await waitFor('abc', undefined);
    expect(reports).toHaveLength(3);
  });

  it('graphqlHTTP reads a directory again when a document is added, changed or removed', async () => {
    const path = directory();
    const { post } = await serve({ documents: { from: path } });
    const bodyOf = async (id: string) => JSON.stringify((await post({ id })).body);
    const waitFor = async (id: string, text: string): Promise<void> => {
      while (!(await bodyOf(id)).includes(text)) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    writeFileSync(join(path, 'new.graphql'), '{ add(a: 40) }');
    await waitFor('new', '42');
    writeFileSync(join(path, 'new.graphql'), '{ add(a: 41) }');
    await waitFor('new', '43');
    rmSync(join(path, 'new.graphql'));
    await waitFor('new', 'DOCUMENT_NOT_FOUND');
    expect(await bodyOf('abc')).toBe(JSON.stringify(WORLD));
  });

  it('graphqlHTTP reads documents again that changed while others were read', async () => {
    const path = directory();
    const { post, reports } = await serve({ documents: { from: path } });
    const replaceWith = (name: string, text: string): void => {
      writeFileSync(join(path, `${name}.new`), text);
      renameSync(join(path, `${name}.new`), join(path, name));
    };
    const slow = 'query Slow { hello }';
    execFileSync('mkfifo', [join(path, 'slow.graphql')]);
    // Resolves when the reload reads the pipe. The other document is read at the same time.
    const pipe = await open(join(path, 'slow.graphql'), 'w');
    await new Promise((resolve) => setTimeout(resolve, 200));
    replaceWith('abc.graphql', '{ add(a: 40) }');
    replaceWith('slow.graphql', slow);
    await pipe.writeFile(slow);
    await pipe.close();
    while ((await post({ id: 'slow' })).code !== undefined)
      await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await post({ id: 'abc' })).body).toEqual({ data: { add: 42 } });
    expect(reports).toEqual([]);
  });

  it('graphqlHTTP reports no error of a file that changed while it was read', async () => {
    const path = file('manifest.json', { abc: HELLO });
    const { post, reports } = await serve({ documents: { from: path } });
    rmSync(path);
    execFileSync('mkfifo', [path]);
    const pipe = await open(path, 'w');
    writeFileSync(`${path}.new`, JSON.stringify({ def: HELLO }));
    renameSync(`${path}.new`, path);
    await pipe.writeFile('{ "abc": "query H');
    await pipe.close();
    while ((await post({ id: 'def' })).code !== undefined)
      await new Promise((resolve) => setTimeout(resolve, 20));
    expect(reports).toEqual([]);
  });

  it.each(['file', 'directory'])(
    'graphqlHTTP reads a %s again when its symbolic link is replaced',
    async (kind) => {
      const root = makeFolder();
      const link = join(root, 'current');
      const point = (version: string, text: string): void => {
        mkdirSync(join(root, version));
        writeFileSync(join(root, version, 'abc.graphql'), text);
        writeFileSync(join(root, version, 'manifest.json'), JSON.stringify({ abc: text }));
        symlinkSync(version, join(root, `${version}.link`));
        renameSync(join(root, `${version}.link`), link);
      };
      point('v1', HELLO);
      const { post, reports } = await serve({
        documents: { from: kind === 'file' ? join(link, 'manifest.json') : link },
      });
      expect((await post({ id: 'abc' })).body).toEqual(WORLD);
      point('v2', '{ add(a: 40) }');
      while (JSON.stringify((await post({ id: 'abc' })).body) === JSON.stringify(WORLD))
        await new Promise((resolve) => setTimeout(resolve, 20));
      expect((await post({ id: 'abc' })).body).toEqual({ data: { add: 42 } });
      expect(reports).toEqual([]);
    },
  );

  it('graphqlHTTP sends DOCUMENT_NOT_FOUND if a document is removed while the body of a request to its path arrives', async () => {
    const path = file('manifest.json', { abc: HELLO });
    const { post, url } = await serve({ documents: { from: path } });
    const req = request(`${url}/abc`, { method: 'POST', headers: { 'content-type': 'application/json' } });
    req.write('{ "variables":');
    writeFileSync(`${path}.new`, JSON.stringify({ def: HELLO }));
    renameSync(`${path}.new`, path);
    while ((await post({ id: 'def' })).code !== undefined)
      await new Promise((resolve) => setTimeout(resolve, 20));
    req.end(' {} }');
    const [response] = await once(req, 'response');
    const body = (await json(response)) as { errors: unknown };
    expect(body.errors).toMatchObject([{ extensions: { code: 'DOCUMENT_NOT_FOUND' } }]);
  });

  it('graphqlHTTP responds to every request while a manifest is replaced again and again', async () => {
    const path = file('manifest.json', { always: HELLO });
    const { post, reports } = await serve({ documents: { from: path } });
    let rounds = 0;
    const replace = (): void => {
      rounds += 1;
      const documents = Object.fromEntries(
        Array.from({ length: 200 }, (_, index) => [`${rounds}-${index}`, `{ a${index}: hello }`]),
      );
      writeFileSync(
        `${path}.new`,
        JSON.stringify({ always: HELLO, last: `{ add(a: ${rounds}) }`, ...documents }),
      );
      renameSync(`${path}.new`, path);
    };
    replace();
    const seen = new Set<string>();
    while (rounds < 3) {
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, index) => post({ id: index % 2 === 0 ? 'always' : 'last' })),
      );
      for (const [index, { body, code }] of results.entries()) {
        if (index % 2 === 0) expect(body).toEqual(WORLD);
        else seen.add(String(code ?? JSON.stringify(body.data)));
      }
      // A machine that is too slow for a fixed pause would read the manifest again and again.
      if (seen.has(JSON.stringify({ add: rounds + 2 }))) replace();
    }
    expect(reports).toEqual([]);
  });
});
