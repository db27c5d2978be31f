// Plain multipart forms with one file, compared with multer. Each handler reads its file, and nothing is left afterwards.
import { runTopic } from './harness.mjs';

process.env.NODE_ENV = 'production';

const BOUNDARY = 'espalier-benchmark';
const SIZE = 65_536;
const form = Buffer.concat([
  Buffer.from(
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="title"\r\n\r\nA walk\r\n--${BOUNDARY}\r\n` +
      'content-disposition: form-data; name="photo"; filename="a.bin"\r\ncontent-type: image/png\r\n\r\n',
  ),
  Buffer.alloc(SIZE, 'a picture\r\n--'),
  Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
]);

async function espalier(use) {
  const { receiveFiles } = await import('espalier/uploads');
  const receive = receiveFiles({ files: { photo: 1 } });
  return appWith(receive, async (req) => use(receive.form(req).files.photo[0]));
}

async function multerWith(options, use) {
  const { default: multer } = await import('multer');
  return appWith(multer(options).single('photo'), async (req) => use(req.file));
}

async function appWith(receive, sizeOf) {
  const { default: express } = await import('express');
  return express().post('/', receive, async (req, res) => res.json(await sizeOf(req)));
}

const fs = () => import('node:fs/promises');
const path = () => import('node:path');
const { tmpdir } = await import('node:os');

export const topic = {
  name: 'forms',
  title: 'Forms',
  about:
    'One file of 64 KiB per plain form, under Express 5. *espalier* keeps a file of this size in memory, and the handler ' +
    'reads it. *multer, disk* writes each file to the disk; the handler reads it from there and deletes it. Two handlers ' +
    'leave the reading out: *espalier, saveTo* and *multer, disk, unread* both write a file and delete it.',
  packages: ['express', 'multer'],
  ratios: ['multer, disk', 'multer, disk, unread', 'multer, memory'],
  contestants: {
    espalier: () => espalier(async (file) => (await file.bytes()).length),
    'espalier, saveTo': () =>
      espalier(async (file) => {
        const target = (await path()).join(tmpdir(), `espalier-bench-${Math.random()}`);
        const size = await file.saveTo(target);
        await (await fs()).unlink(target);
        return size;
      }),
    'multer, disk': () =>
      multerWith({ dest: tmpdir() }, async (file) => {
        const { length } = await (await fs()).readFile(file.path);
        await (await fs()).unlink(file.path);
        return length;
      }),
    'multer, disk, unread': () =>
      multerWith({ dest: tmpdir() }, async (file) => {
        await (await fs()).unlink(file.path);
        return file.size;
      }),
    'multer, memory': async () => {
      const { default: multer } = await import('multer');
      return multerWith({ storage: multer.memoryStorage() }, async (file) => file.buffer.length);
    },
  },
  loads: [
    {
      name: '64 KiB',
      requests: [
        {
          method: 'POST',
          path: '/',
          headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
          body: form,
        },
      ],
      expect: { status: 200, body: String(SIZE) },
      count: 3000,
    },
  ],
};

await runTopic(import.meta.url, topic);
