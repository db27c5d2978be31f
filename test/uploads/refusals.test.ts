/** @tags node-lines graphql */
import type * as http from 'node:http';
import { type GraphQLOptions, graphqlHTTP, type UploadOptions } from 'espalier';
import express from 'express';
import { BOUNDARY, encode, file, map, operations, type Part, post } from './form.ts';
import { createSchema, MANY, ONE, type Seen } from './schema.ts';
import { startServer, type TestServer } from './server.ts';

const one = { query: ONE, variables: { file: null } };
const many = (count: number): object => ({ query: MANY, variables: { files: Array(count).fill(null) } });
const valid = [operations(one), map({ 0: ['variables.file'] }), file('0')];
const nested = (open: string, close: string, depth: number): string =>
  open.repeat(depth) + close.repeat(depth);
const raw = (text: string): Buffer => Buffer.from(text.replaceAll('\n', '\r\n'));
const mapped = (
  path: string,
  variables: unknown = { file: null, s: 'text', o: {}, list: [null] },
): Part[] => [operations({ query: ONE, variables }), map({ 0: [path] }), file('0')];

const LIMITS: UploadOptions = {
  maxFileBytes: 100_000,
  maxFiles: 3,
  maxRequestBytes: 500_000,
};

/** The request, and the status and code of its response. */
type Case = [string, Buffer | readonly Part[], string];

const cases: Case[] = [
  // operations
  ['no operations', [map({ 0: ['variables.file'] }), file('0')], '400 BAD_MULTIPART'],
  ['no operations and no file', [map({})], '400 BAD_MULTIPART'],
  ['operations that are not JSON', [operations('{bad'), map({}), file('0')], '400 BAD_OPERATIONS'],
  ...['"str"', 'null', '5', 'true'].map(
    (text): Case => [`operations ${text}`, [operations(text), map({})], '400 BAD_OPERATIONS'],
  ),
  ['empty operations', [operations(''), map({})], '400 BAD_OPERATIONS'],
  ['an empty batch', [operations('[]'), map({})], '400 BATCHING_OFF'],
  ['a batch without the option batching', [operations([one]), map({}), file('0')], '400 BATCHING_OFF'],
  ['operations without a query', [operations({ variables: {} }), map({}), file('0')], '400 BAD_REQUEST'],
  ['deep lists', [operations(nested('[', ']', 20_000)), map({})], '400 LIMIT_JSON'],
  ['deep objects', [operations(`${'{"a":'.repeat(8000)}1${'}'.repeat(8000)}`), map({})], '400 LIMIT_JSON'],
  ['two parts named operations', [operations(one), operations(one), ...valid.slice(1)], '400 BAD_MULTIPART'],
  ['operations after the files', [...valid, operations(one)], '400 BAD_MULTIPART'],
  [
    'operations as a file part',
    [file('operations', JSON.stringify(one)), ...valid.slice(1)],
    '400 BAD_MULTIPART',
  ],
  // map
  ['no map', [operations(one)], '400 BAD_MULTIPART'],
  ['no map before the file', [operations(one), file('0')], '400 BAD_MULTIPART'],
  ['a map after the file', [operations(one), file('0'), map({ 0: ['variables.file'] })], '400 BAD_MULTIPART'],
  ['a map that is not JSON', [operations(one), map('{bad'), file('0')], '400 BAD_MAP'],
  ...['[]', 'null', '"x"', '1'].map(
    (text): Case => [`the map ${text}`, [operations(one), map(text), file('0')], '400 BAD_MAP'],
  ),
  ...['"variables.file"', '[1]', 'null', '{}', '[["variables.file"]]'].map(
    (text): Case => [
      `a map entry ${text}`,
      [operations(one), map(`{"0":${text}}`), file('0')],
      '400 BAD_MAP',
    ],
  ),
  ['two maps', [...valid.slice(0, 2), map({}), file('0')], '400 BAD_MULTIPART'],
  // paths
  ...[
    '__proto__.polluted',
    'variables.__proto__.x',
    'variables.__proto__',
    'constructor.prototype.x',
    'variables.constructor.x',
    'variables.nope',
    '',
    '.',
    'variables',
    'variables.',
    'variables.file.',
    'variables..file',
    'file',
    'query',
    'operationName',
    'variables.file.below',
    'variables.s',
    'variables.o',
    'variables.list',
    'variables.list.1',
    'variables.list.-1',
    'variables.list.1e0',
    'variables.list.00',
    'variables.list.length',
    'variables.list.4294967295',
    'variables.list.999999999',
    'variables.list. 0',
    '0.variables.file',
    ' variables.file',
    'toString',
    'variables.toString',
    `variables${'.a'.repeat(40)}`,
    `variables.${'a'.repeat(600)}`,
  ].map((path): Case => [`the path ${JSON.stringify(path.slice(0, 40))}`, mapped(path), '400 BAD_MAP_PATH']),
  ['100 000 steps', mapped('a.'.repeat(20_000)), '400 BAD_MAP_PATH'],
  ['a path through a value that is not an object', mapped('variables.file', null), '400 BAD_MAP_PATH'],
  [
    '__proto__ as a key of operations',
    mapped('variables.__proto__.x', JSON.parse('{"__proto__":{"x":null}}')),
    '400 BAD_MAP_PATH',
  ],
  [
    'one path for two files',
    [operations(many(1)), map({ 0: ['variables.files.0'], 1: ['variables.files.0'] }), file('0'), file('1')],
    '400 BAD_MAP_PATH',
  ],
  [
    'a path below a file',
    [operations(many(1)), map({ 0: ['variables.files.0', 'variables.files.0.x'] }), file('0')],
    '400 BAD_MAP_PATH',
  ],
  [
    'too many paths',
    [
      operations(many(16)),
      map({ 0: Array.from({ length: 16 }, (_, i) => `variables.files.${i}`) }),
      file('0'),
    ],
    '413 TOO_MANY_PATHS',
  ],
  [
    'too many map entries',
    [
      operations(many(4)),
      map(Object.fromEntries(Array.from({ length: 4 }, (_, i) => [i, [`variables.files.${i}`]]))),
    ],
    '413 TOO_MANY_FILES',
  ],
  // files
  [
    'a missing file',
    [operations(many(2)), map({ 0: ['variables.files.0'], 1: ['variables.files.1'] }), file('0')],
    '400 FILE_MISSING',
  ],
  [
    'a file part without a filename',
    [...valid.slice(0, 2), { name: '0', type: 'application/octet-stream', body: 'x' }],
    '400 BAD_MULTIPART',
  ],
  [
    'a text part in the place of a file',
    [...valid.slice(0, 2), { name: '0', body: 'x' }],
    '400 BAD_MULTIPART',
  ],
  ['an empty filename', [...valid.slice(0, 2), file('0', 'x', '')], '400 BAD_MULTIPART'],
  ...['.', '..', '/', 'a/..'].map(
    (name): Case => [
      `the filename ${name}`,
      [...valid.slice(0, 2), file('0', 'x', name)],
      '400 BAD_MULTIPART',
    ],
  ),
  [
    'a file one byte too large',
    [...valid.slice(0, 2), file('0', Buffer.alloc(100_001))],
    '413 FILE_TOO_LARGE',
  ],
  [
    'too many file parts',
    [operations(many(1)), map({ 0: ['variables.files.0'] }), file('0'), file('1'), file('2'), file('3')],
    '413 TOO_MANY_FILES',
  ],
  [
    'thousands of file parts',
    [
      operations(many(1)),
      map({ 0: ['variables.files.0'] }),
      ...Array.from({ length: 2000 }, (_, i) => file(`x${i}`, 'x')),
    ],
    '413 TOO_MANY_FILES',
  ],
  // text parts
  [
    'large operations',
    [operations({ ...one, extensions: { x: 'x'.repeat(50_000) } }), map({})],
    '413 FIELD_TOO_LARGE',
  ],
  ['a large map', [operations(one), map(`{"0":["${'x'.repeat(50_000)}"]}`)], '413 FIELD_TOO_LARGE'],
  [
    'too many text parts',
    Array.from({ length: 5000 }, (_, i) => ({ name: `f${i}`, body: 'x' })),
    '413 TOO_MANY_FIELDS',
  ],
  ['nested names', [{ name: `a${'[b]'.repeat(100)}`, body: 'x' }, ...valid], '400 BAD_MULTIPART'],
  ['an index in a name', [{ name: 'a[4294967294]', body: 'x' }, ...valid], '400 BAD_MULTIPART'],
  ['a prototype in a name', [{ name: 'a[__proto__][x]', body: 'x' }, ...valid], '400 BAD_MULTIPART'],
  ['a part without a name', [{ body: 'x' }, ...valid], '400 BAD_MULTIPART'],
  ['a part with an endless name', [...valid.slice(0, 2), file('n'.repeat(60_000))], '400 BAD_MULTIPART'],
  [
    'a text part with a long name',
    [...valid.slice(0, 2), { name: 'n'.repeat(5000), body: 'x' }, file('0')],
    '400 BAD_MULTIPART',
  ],
  ['a file part without a name', [...valid.slice(0, 2), { filename: 'x', body: 'x' }], '400 BAD_MULTIPART'],
  // the body
  ['an empty body', Buffer.alloc(0), '400 BAD_MULTIPART'],
  ['only the closing line', raw(`--${BOUNDARY}--\n`), '400 BAD_MULTIPART'],
  ['a boundary that does not occur', Buffer.from('x'.repeat(10_000)), '400 BAD_MULTIPART'],
  ['a body cut in a file', encode(valid).subarray(0, -BOUNDARY.length - 20), '400 BAD_MULTIPART'],
  [
    'a body cut in a header',
    Buffer.concat([encode(valid.slice(0, 2), ''), raw(`--${BOUNDARY}\nContent-Disp`)]),
    '400 BAD_MULTIPART',
  ],
  ['a body cut in operations', encode(valid).subarray(0, 120), '400 BAD_MULTIPART'],
  [
    'a malformed header',
    [{ head: 'Content-Disposition form-data', body: 'x' }, ...valid],
    '400 BAD_MULTIPART',
  ],
  [
    'a control byte in a header name',
    [{ head: 'Content\u0001: x', body: 'x' }, ...valid],
    '400 BAD_MULTIPART',
  ],
  ['a long header', [{ head: `X-Long: ${'x'.repeat(40_000)}`, body: 'x' }, ...valid], '400 BAD_MULTIPART'],
  [
    'thousands of headers',
    [{ head: 'X-A: b\r\n'.repeat(5000).trimEnd(), body: 'x' }, ...valid],
    '400 BAD_MULTIPART',
  ],
  ['a NUL in a filename', [...valid.slice(0, 2), file('0', 'x', 'a\u0000b')], '400 BAD_MULTIPART'],
  ['a line feed in a filename', [...valid.slice(0, 2), file('0', 'x', 'a\nb')], '400 BAD_MULTIPART'],
  [
    'a body over the limit',
    [
      ...valid.slice(0, 2),
      ...Array.from({ length: 3 }, (_, i) => file(`${i}`, Buffer.alloc(99_999))),
      { name: 'x', body: Buffer.alloc(300_000) },
    ],
    '413 BODY_TOO_LARGE',
  ],
];

const refusalOf = ({ status, json }: Awaited<ReturnType<typeof post>>): string => {
  expect(json).toEqual({
    errors: [{ message: expect.any(String), extensions: { code: expect.any(String) } }],
  });
  return `${status} ${json.errors[0].extensions.code}`;
};

describe('a malformed upload', () => {
  const seen: Seen = [];
  let server: TestServer;
  let url: string;

  beforeAll(async () => {
    const app = express();
    app.use('/graphql', graphqlHTTP(createSchema(seen), { uploads: LIMITS, limits: { bodyBytes: 50_000 } }));
    server = await startServer(app);
    url = `${server.url}/graphql`;
  });
  afterAll(() => server[Symbol.asyncDispose]());
  beforeEach(() => {
    seen.length = 0;
  });

  it.each(cases)('graphqlHTTP refuses a malformed upload: %s', async (_, body, refusal) => {
    const response = await post(url, body);
    expect(refusalOf(response)).toBe(refusal);
    expect(response.headers['content-type']).toMatch(/json/);
    expect(JSON.stringify(response.json)).not.toMatch(/\.ts:|\/tmp|busboy|multer|node_modules/i);
    expect(seen).toEqual([]);
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    // The server still works.
    expect((await post(url, valid)).json.data.one.text).toBe('content of 0');
  });

  const contentType = (value: string): http.OutgoingHttpHeaders => ({ 'content-type': value });
  it.each<[string, http.OutgoingHttpHeaders, string]>([
    ['no boundary', contentType('multipart/form-data'), '400 BAD_MULTIPART'],
    ['an empty boundary', contentType('multipart/form-data; boundary='), '400 BAD_MULTIPART'],
    ['an empty quoted boundary', contentType('multipart/form-data; boundary=""'), '400 BAD_MULTIPART'],
    [
      'a huge boundary',
      contentType(`multipart/form-data; boundary=${'x'.repeat(5000)}`),
      '400 BAD_MULTIPART',
    ],
    ['another boundary', contentType('multipart/form-data; boundary=other'), '400 BAD_MULTIPART'],
    ['multipart/mixed', contentType(`multipart/mixed; boundary=${BOUNDARY}`), '415 UNSUPPORTED_MEDIA_TYPE'],
    ['compression', { 'content-encoding': 'gzip' }, '415 UNSUPPORTED_ENCODING'],
    [
      'a page of another site',
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
      '403 CROSS_SITE',
    ],
    ['a sibling domain', { 'sec-fetch-site': 'same-site', origin: 'https://sibling.test' }, '403 CROSS_SITE'],
    ['another Origin', { origin: 'https://evil.test' }, '403 CROSS_SITE'],
    ['a hidden Origin', { origin: 'null' }, '403 CROSS_SITE'],
  ])('graphqlHTTP refuses an upload by its request headers: %s', async (_, headers, refusal) => {
    const response = await post(url, valid, headers);
    expect(refusalOf(response)).toBe(refusal);
    expect(seen).toEqual([]);
  });

  it('graphqlHTTP refuses a cross-site multipart request without a file', async () => {
    const { status } = await post(url, [operations({ query: '{ hello }' }), map({})], {
      'sec-fetch-site': 'cross-site',
    });
    expect(status).toBe(403);
  });

  it.each([
    ['a page of the same origin', { 'sec-fetch-site': 'same-origin', origin: 'https://x.test' }],
    ['a preflighted request', { 'sec-fetch-site': 'cross-site', 'apollo-require-preflight': 'true' }],
    ['curl or a server', {}],
  ])('graphqlHTTP accepts an upload from %s', async (_, headers) => {
    expect((await post(url, valid, headers)).json.data.one.text).toBe('content of 0');
  });

  it('graphqlHTTP refuses an upload with PUT with 405', async () => {
    expect((await post(url, valid, {}, 'PUT')).status).toBe(405);
  });

  it('graphqlHTTP accepts a file of exactly maxFileBytes', async () => {
    const { json } = await post(url, [...valid.slice(0, 2), file('0', Buffer.alloc(100_000))]);
    expect(json.data.one.size).toBe(100_000);
  });

  it('graphqlHTTP uses the first of two file parts with the same name', async () => {
    const { json } = await post(url, [...valid, file('0', 'second')]);
    expect(json.data.one.text).toBe('content of 0');
  });

  it.each(['__proto__', 'constructor', 'a[b]'])('graphqlHTTP accepts a file part named %s', async (name) => {
    const { json } = await post(url, [
      operations(one),
      map(`{${JSON.stringify(name)}:["variables.file"]}`),
      file(name, 'x', 'x'),
    ]);
    expect(json.data.one).toMatchObject({ fieldName: name, text: 'x' });
  });

  it('graphqlHTTP accepts part headers named like members of Object', async () => {
    const head = `Content-Disposition: form-data; name="0"; filename="x"\r\n__proto__: x\r\nconstructor: y`;
    expect((await post(url, [...valid.slice(0, 2), { head, body: 'x' }])).json.data.one.text).toBe('x');
  });

  it('graphqlHTTP accepts a boundary of 252 characters', async () => {
    const boundary = 'b'.repeat(252);
    const body = Buffer.from(encode(valid).toString('latin1').replaceAll(BOUNDARY, boundary), 'latin1');
    const { json } = await post(url, body, contentType(`multipart/form-data; boundary=${boundary}`));
    expect(json.data.one.text).toBe('content of 0');
  });

  it('graphqlHTTP does not read beyond the Content-Length of an upload', async () => {
    const whole = encode(valid);
    const { status } = await post(url, whole.subarray(0, -30), { 'content-length': whole.length - 30 });
    expect(status).toBe(400);
    expect(seen).toEqual([]);
  });
});

describe('multipartUploadsEnabled', () => {
  it.each<GraphQLOptions>([
    { multipartUploadsEnabled: false },
    { uploads: false },
    { multipartUploadsEnabled: true, uploads: false },
  ])('%j refuses uploads with 415 before parsing', async (options) => {
    const seen: Seen = [];
    await using server = await startServer(graphqlHTTP(createSchema(seen), options));
    const { status, json } = await post(server.url, valid);
    expect([status, json.errors[0].extensions.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    expect(seen).toEqual([]);
  });
});

describe('the accept option', () => {
  it('a list of types in uploads.accept checks the first bytes of files, not what the client declares', async () => {
    const seen: Seen = [];
    const uploads: UploadOptions = { accept: ['image/png', 'audio/*'] };
    await using server = await startServer(graphqlHTTP(createSchema(seen), { uploads }));
    const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
    const typed = (body: string | Buffer): Part[] => [
      operations(one),
      map({ 0: ['variables.file'] }),
      { name: '0', filename: 'a.png', type: 'image/png', body },
    ];
    for (const [body, found] of [
      ['<script>', 'no known type'],
      ['%PDF-1.7', 'the type "application/pdf"'],
    ] as const) {
      const { status, json } = await post(server.url, typed(body));
      expect([status, json.errors[0].extensions.code]).toEqual([415, 'FILE_NOT_ACCEPTED']);
      expect(json.errors[0].message).toBe(
        `The file "a.png" (part "0") has ${found} by its first bytes; accepted: image/png, audio/*`,
      );
    }
    expect(seen).toEqual([]);
    expect((await post(server.url, typed(png))).status).toBe(200);
    expect((await post(server.url, typed('fLaC'))).status).toBe(200);
  });

  it('the option uploads.accept refuses a file before its content is received', async () => {
    const seen: Seen = [];
    const accept: UploadOptions['accept'] = ({ mimetype }) => mimetype.startsWith('image/');
    await using server = await startServer(graphqlHTTP(createSchema(seen), { uploads: { accept } }));
    const { status, json } = await post(server.url, valid);
    expect([status, json.errors[0].extensions.code]).toEqual([415, 'FILE_NOT_ACCEPTED']);
    expect(seen).toEqual([]);
    const image = { ...file('0'), type: 'image/png' };
    expect((await post(server.url, [...valid.slice(0, 2), image])).json.data.one.mimetype).toBe('image/png');
  });
});
