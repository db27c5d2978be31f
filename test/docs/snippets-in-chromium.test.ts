/** @tags once slow */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { graphqlHTTP, Upload, type UploadedFile } from 'espalier';
import express from 'express';
import { GraphQLNonNull, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import type { Browser } from 'playwright-core';
import { launch } from '../chromium.ts';
import { listen, makeFolder } from '../kit.ts';
import { needs } from '../programs.ts';
import { snippets } from '../snippets.ts';

const received: string[] = [];
const folder = makeFolder();
/** A mutation that takes a file, under each of the names in the documentation. */
const upload = {
  type: GraphQLString,
  args: { file: { type: new GraphQLNonNull(Upload) } },
  resolve: async (_root: unknown, { file }: { file: UploadedFile }) => {
    received.push(`${file.filename}: ${await file.text()}`);
    return 'stored';
  },
};
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: { ok: { type: GraphQLString } } }),
  mutation: new GraphQLObjectType({ name: 'Mutation', fields: { addNote: upload, store: upload } }),
});

let browser: Browser;
let url: string;

beforeAll(async () => {
  browser = await launch();
  const app = express().use('/graphql', graphqlHTTP(schema));
  app.get('/', (_req, res) => void res.send('<!doctype html><input id="input" type="file">'));
  ({ url } = await listen(app));
});

afterAll(async () => {
  await browser.close();
});

beforeEach(() => {
  received.length = 0;
});

const uploading = snippets('js').filter(({ code }) => code.includes('FormData'));

it.each(uploading.map(({ name, code }) => [name, code]))(
  'the browser code of %s uploads the chosen file',
  async (_name, code) => {
    const page = await browser.newPage();
    await page.goto(url);
    await page
      .locator('#input')
      .setInputFiles({ name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('a note') });
    const result = await page.evaluate(`(async () => {${code}; return { data, errors }; })()`);
    expect(result).toEqual({ data: { [code.includes('addNote') ? 'addNote' : 'store']: 'stored' } });
    expect(received).toEqual(['note.txt: a note']);
    await page.close();
  },
);

needs('curl').it('the curl command of docs/uploads.md uploads a file', async () => {
  writeFileSync(join(folder, 'note.txt'), 'a note');
  const commands = snippets('sh').filter(({ code }) => code.startsWith('curl ') && code.includes(' -F '));
  expect(commands.map(({ page }) => page)).toEqual(['docs/uploads.md']);
  for (const { code } of commands) {
    const command = code.replace('http://localhost:3000', url);
    const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: folder });
    expect(JSON.parse(stdout)).toEqual({ data: { addNote: 'stored' } });
  }
  expect(received).toEqual(['note.txt: a note']);
});
