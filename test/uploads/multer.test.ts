/** @tags once */
import { receiveFiles } from 'espalier/uploads';
import express, { type ErrorRequestHandler } from 'express';
import fc from 'fast-check';
import multer from 'multer';
import { cleanFilename } from '../../src/uploads/files.ts';
import { listen } from '../kit.ts';
import { encode, type Part, post } from './form.ts';

// docs/migrating/multer.md lists where both differ: nested names, charsets, status codes, and characters of filenames.

const NAMES = [
  'a',
  'b',
  'photo',
  '__proto__',
  'constructor',
  'ü',
  'say %22hi%22',
  'a%0d%0ab',
  '50%25 %',
  ' ',
];
const FILENAMES = [
  'a.png',
  '',
  '.',
  '..',
  '../x',
  'C:\\\\dir\\\\y',
  'é 日本.txt',
  'q%22.png',
  'a%0D%0Ab',
  '%',
  'a\\"b',
];
const TYPES = [
  undefined,
  'text/plain',
  'text/plain; charset=iso-8859-1',
  'image/png',
  'application/octet-stream',
  'x',
];
const HEADS = [
  'Content-Disposition: form-data',
  'Content-Disposition: attachment; name="a"',
  'Content-Disposition: form-data; name="a"; filename="b',
  "Content-Disposition: form-data; name=a; filename*=UTF-8''%e2%82%ac.txt",
  'Content-Transfer-Encoding: BASE64\r\nContent-Disposition: form-data; name="a"; filename="b"',
  'content-disposition: FORM-DATA; NAME="a"; name="b"',
  'X: y',
  ': malformed',
];

const body = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.constantFrom('', '\r\n', '--espalier-test', 'x'.repeat(3000)),
);
const part: fc.Arbitrary<Part> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ name: fc.constantFrom(...NAMES), body }) },
  {
    weight: 6,
    arbitrary: fc
      .record({ name: fc.constantFrom(...NAMES), filename: fc.constantFrom(...FILENAMES), body })
      .chain((given) => fc.constantFrom(...TYPES).map((type) => ({ ...given, ...(type && { type }) }))),
  },
  { weight: 1, arbitrary: fc.record({ head: fc.constantFrom(...HEADS), body }) },
);

const onError: ErrorRequestHandler = (_error, _req, res, _next) => void res.json('refused');

it('receiveFiles gives handlers the same files and texts as multer', async () => {
  const receive = receiveFiles({ maxFiles: 100 });
  const app = express().post('/espalier', receive, async (req, res) => {
    const { files, body: fields } = receive.form(req);
    const lists = Object.values(files).flat();
    const shown = lists.map(async (file) => {
      const { fieldName, filename, mimetype, encoding, size } = file;
      return [fieldName, filename, mimetype, encoding, size, await file.text()];
    });
    res.json([(await Promise.all(shown)).map(String).sort(), Object.entries(fields)]);
  });
  app.post('/multer', multer({ defParamCharset: 'utf8' }).any(), (req, res) => {
    const lists = Array.isArray(req.files) ? req.files : [];
    const shown = lists.map((file) => {
      const { fieldname, originalname, mimetype, encoding, size, buffer } = file;
      return [
        fieldname,
        cleanFilename(originalname),
        mimetype,
        encoding,
        size,
        new TextDecoder().decode(buffer),
      ];
    });
    res.json([shown.map(String).sort(), Object.entries(req.body)]);
  });
  const { url } = await listen(app.use(onError));
  let received = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 6 }), async (parts) => {
      const form = encode(parts);
      const [ours, theirs] = await Promise.all([post(`${url}/espalier`, form), post(`${url}/multer`, form)]);
      expect(ours.json).toEqual(theirs.json);
      if (Array.isArray(ours.json)) received++;
    }),
    { numRuns: 300, seed: 62 },
  );
  expect(received).toBeGreaterThan(100);
});
