/** @tags node-lines graphql */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { graphqlHTTP, Upload, type UploadedFile, type UploadOptions } from 'espalier';
import { buildSchema, GraphQLObjectType, GraphQLSchema, GraphQLString, parse, validate } from 'graphql';
import { cleanFilename } from '../../src/uploads/files.ts';
import { makeFolder } from '../kit.ts';
import { file, map, operations, type Part, post } from './form.ts';
import { startServer } from './server.ts';

type Use = (file: UploadedFile) => unknown;

/** Uploads one part and returns the result of a resolver. */
async function use(part: Part, resolver: Use, uploads: UploadOptions = {}): Promise<unknown> {
  let result: unknown;
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { hello: { type: GraphQLString } } }),
    mutation: new GraphQLObjectType({
      name: 'Mutation',
      fields: {
        one: {
          type: GraphQLString,
          args: { file: { type: Upload } },
          resolve: async (_, args) => {
            result = await resolver(args.file);
          },
        },
      },
    }),
  });
  await using server = await startServer(graphqlHTTP(schema, { uploads }));
  const query = 'mutation ($file: Upload) { one(file: $file) }';
  const { json } = await post(server.url, [
    operations({ query, variables: { file: null } }),
    map({ 0: ['variables.file'] }),
    part,
  ]);
  expect(json).toEqual({ data: { one: null } });
  return result;
}

const large = Buffer.alloc(700_000, 'espalier ');
const sizes: [string, Buffer][] = [
  ['in memory', Buffer.from('{"a":"é"}')],
  ['on disk', Buffer.from(`{"a":${JSON.stringify(large.toString())}}`)],
];

describe('the value of an upload', () => {
  it('an upload can be used with and without await', async () => {
    await use(file('0', 'abc', 'a.txt'), async (value) => {
      expect(value.filename).toBe('a.txt');
      expect({ ...value }).toMatchObject({
        filename: 'a.txt',
        mimetype: 'text/plain',
        encoding: '7bit',
        size: 3,
      });
      expect(await value).toBe(value);
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
      expect(JSON.stringify(value)).toBe(
        '{"filename":"a.txt","mimetype":"text/plain","encoding":"7bit","fieldName":"0","size":3}',
      );
    });
  });

  it('an upload works in code for graphql-upload', async () => {
    const result = await use(file('0', 'abc'), async (promise) => {
      const { createReadStream, filename } = await promise;
      return [filename, await text(createReadStream())];
    });
    expect(result).toEqual(['0.txt', 'abc']);
  });

  it.each(sizes)('an upload returns its content in every form: %s', async (_, content) => {
    await use(file('0', content), async (value) => {
      expect(value.size).toBe(content.length);
      expect(await value.text()).toBe(content.toString());
      expect(await value.json()).toEqual(JSON.parse(content.toString()));
      expect(Buffer.from(await value.bytes()).equals(content)).toBe(true);
      expect(Buffer.from(await value.arrayBuffer()).equals(content)).toBe(true);
      expect(await text(value.stream())).toBe(content.toString());
      expect(await text(value.createReadStream({ encoding: 'latin1' }))).toBe(content.toString('latin1'));
      const whole = await value.toFile();
      expect([whole.name, whole.type, whole.size]).toEqual(['0.txt', 'text/plain', content.length]);
      expect(Buffer.from(await whole.arrayBuffer()).equals(content)).toBe(true);
    });
  });

  it.each(sizes)('an upload has independent streams of different speed: %s', async (_, content) => {
    await use(file('0', content), async (value) => {
      const idle = value.createReadStream();
      const given = value.createReadStream();
      given.destroy();
      const all = await Promise.all(
        [1, 2, 3].map(() => text(value.createReadStream({ highWaterMark: 1000 }))),
      );
      expect(new Set(all)).toEqual(new Set([content.toString()]));
      expect(await text(idle)).toBe(content.toString());
    });
  });

  it.each(sizes)('saveTo writes a new file and does not overwrite another: %s', async (_, content) => {
    const folder = makeFolder();
    const taken = join(folder, 'taken');
    writeFileSync(taken, 'mine');
    await use(file('0', content), async (value) => {
      expect(await value.saveTo(join(folder, 'saved'))).toBe(content.length);
      await expect(value.saveTo(taken)).rejects.toMatchObject({ code: 'EEXIST' });
      await expect(value.saveTo(join(folder, 'no', 'where'))).rejects.toMatchObject({ code: 'ENOENT' });
    });
    expect(readFileSync(join(folder, 'saved')).equals(content)).toBe(true);
    expect(readFileSync(taken, 'utf8')).toBe('mine');
    expect(readdirSync(folder)).toHaveLength(2);
  });

  it.each(sizes)('an upload cannot be read after the response: %s', async (_, content) => {
    const value = (await use(file('0', content), (given) => {
      given.createReadStream();
      given.text();
      return given;
    })) as UploadedFile;
    expect(value.filename).toBe('0.txt');
    await expect(value.text()).rejects.toThrow(/until the response ends/);
    await expect(text(value.createReadStream())).rejects.toThrow(/until the response ends/);
  });

  it('an upload is written to disk when memoryBytes is used up', async () => {
    const content = Buffer.alloc(50_000, 'x');
    const digest = await use(
      file('0', content),
      async (value) =>
        createHash('sha256')
          .update(await value.bytes())
          .digest('hex'),
      { memoryBytes: 1000 },
    );
    expect(digest).toBe(createHash('sha256').update(content).digest('hex'));
  });
});

describe('a filename', () => {
  it.each([
    ['a.txt', 'a.txt'],
    ['../../etc/passwd', 'passwd'],
    ['/etc/passwd', 'passwd'],
    ['..\\\\..\\\\x.txt', 'x.txt'],
    ['C:\\\\dir\\\\y.txt', 'y.txt'],
    ['a%0d%0aSet-Cookie: x', 'aSet-Cookie: x'],
    ['na%22me', 'na"me'],
    ['na\\"me', 'na"me'],
    ['50%.pdf', '50%.pdf'],
    ['日本語 – é.txt', '日本語 – é.txt'],
    ['a\u202egpj.exe', 'agpj.exe'],
  ])('a filename %j is received as %j', async (sent, given) => {
    expect(await use(file('0', 'x', sent), (value) => value.filename)).toBe(given);
  });

  it('a filename is also read from filename*, which RFC 7578 forbids but clients send', async () => {
    const head = `Content-Disposition: form-data; name="0"; filename*=UTF-8''%e2%82%ac.txt`;
    expect(await use({ head, body: 'x' }, (value) => value.filename)).toBe('€.txt');
  });

  it.each([
    ['', 'unnamed'],
    ['..', 'unnamed'],
    ['.\u0000.', 'unnamed'],
    ['a/..', 'unnamed'],
    [' \u0007 ', 'unnamed'],
    ['a\ud800b', 'ab'],
    [`${'é'.repeat(300)}.jpeg`, `${'é'.repeat(125)}.jpeg`],
    ['x'.repeat(4000), 'x'.repeat(255)],
    [`.${'x'.repeat(300)}`, `.${'x'.repeat(254)}`],
  ])('cleanFilename cleans %j', (raw, clean) => {
    expect(cleanFilename(raw)).toBe(clean);
    expect(Buffer.byteLength(clean)).toBeLessThanOrEqual(255);
  });
});

describe('the Upload scalar', () => {
  const imitation = {
    filename: 'x',
    mimetype: 'text/plain',
    size: 1,
    path: '/etc/passwd',
    createReadStream: {},
  };

  it.each([[imitation], ['x'], [1], [[]], [{}], [true]])(
    'Upload refuses the JSON value %j',
    async (value) => {
      const seen: string[] = [];
      const schema = new GraphQLSchema({
        query: new GraphQLObjectType({
          name: 'Query',
          fields: {
            one: { type: GraphQLString, args: { file: { type: Upload } }, resolve: () => seen.push('ran') },
          },
        }),
      });
      await using server = await startServer(graphqlHTTP(schema));
      const response = await fetch(server.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          query: 'query ($file: Upload) { one(file: $file) }',
          variables: { file: value },
        }),
      });
      const json = (await response.json()) as { errors: { message: string }[]; data?: unknown };
      expect(json.errors[0]?.message).toMatch(/Upload must be a file part of a multipart request/);
      expect(json.data).toBeUndefined();
      expect(seen).toEqual([]);
    },
  );

  it('Upload refuses literals and cannot be serialized', () => {
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({
        name: 'Query',
        fields: { one: { type: Upload, args: { file: { type: Upload } } } },
      }),
    });
    for (const literal of ['"x"', '1', '{a: 1}', 'true']) {
      expect(String(validate(schema, parse(`{ one(file: ${literal}) }`)))).toMatch(
        /must be given as a variable/,
      );
    }
    expect(() => Upload.serialize(imitation)).toThrow(/cannot be returned/);
    expect(() => Upload.parseValue(imitation)).toThrow(/multipart/);
  });
});

it('graphqlHTTP accepts "scalar Upload" in SDL with the functions of Upload, or without multipart requests', () => {
  const sdl = buildSchema('scalar Upload type Query { a(file: Upload): Int }');
  graphqlHTTP(sdl, { multipartUploadsEnabled: false });
  Object.assign(sdl.getType('Upload') as object, { parseValue: Upload.parseValue });
  graphqlHTTP(sdl);
});
