/** @tags once */
import { createServer } from 'node:http';
import express from 'express';
import { memoryFiles } from '../../middleware/sources.ts';
import { type StaticFilesOptions, staticFiles } from '../../middleware/static.ts';
import { listen, makeFolder } from '../kit.ts';

const POLICY = "sandbox; default-src 'none'";
const files = {
  'a.png': 'png',
  'a.html': '<script>1</script>',
  'a.svg': '<svg/>',
  'a.pdf': '%PDF-',
  'a.txt': 'text',
  'index.html': 'home',
  'say "hi"; \u202egpj.html': 'x',
  'ü.zip': 'zip',
};

async function serve(options: StaticFilesOptions = {}, before?: express.RequestHandler): Promise<string> {
  const app = express();
  if (before !== undefined) app.use(before);
  return (await listen(app.use(staticFiles(makeFolder(files), { untrusted: true, ...options })))).url;
}

const headersOf = async (url: string, name: string, init: RequestInit = {}) =>
  Object.fromEntries((await fetch(`${url}/${encodeURIComponent(name)}`, init)).headers);

describe('the option untrusted', () => {
  it('untrusted shows pictures and text with their type, and sends everything else as a download', async () => {
    const url = await serve();
    for (const [name, type] of [
      ['a.png', 'image/png'],
      ['a.txt', 'text/plain; charset=utf-8'],
    ] as const) {
      const headers = await headersOf(url, name);
      expect(headers).toMatchObject({
        'content-type': type,
        'content-security-policy': POLICY,
        'cross-origin-resource-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
      });
      expect(headers).not.toHaveProperty('content-disposition');
    }
    for (const name of ['a.html', 'a.svg', 'a.pdf', 'index.html', 'ü.zip']) {
      expect(await headersOf(url, name)).toMatchObject({
        'content-type': 'application/octet-stream',
        'content-security-policy': POLICY,
        'content-disposition': expect.stringMatching(/^attachment; filename="/),
      });
    }
    expect((await fetch(`${url}/`)).status).toBe(404);
  });

  it('untrusted writes names per RFC 6266 and RFC 8187, without characters that change their direction', async () => {
    const url = await serve();
    const { 'content-disposition': disposition } = await headersOf(url, 'say "hi"; \u202egpj.html');
    expect(disposition).toBe(
      `attachment; filename="say _hi_; gpj.html"; filename*=UTF-8''say%20%22hi%22%3B%20gpj.html`,
    );
    expect((await headersOf(url, 'ü.zip'))['content-disposition']).toBe(
      `attachment; filename="_.zip"; filename*=UTF-8''%C3%BC.zip`,
    );
  });

  it('untrusted overrides a type, a policy and a disposition of other code, but keeps the name of a download', async () => {
    const url = await serve({
      setHeaders(res, path) {
        res.setHeader('Content-Type', 'text/html');
        const disposition = path.endsWith('.pdf') ? 'attachment; filename="bill.pdf"' : 'inline';
        res.setHeader('Content-Disposition', disposition);
        res.setHeader('Content-Security-Policy', "script-src 'self'");
        res.setHeader('Cross-Origin-Resource-Policy', 'same-site');
        res.removeHeader('X-Content-Type-Options');
      },
    });
    expect(await headersOf(url, 'a.html')).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-disposition': expect.stringMatching(/^attachment/),
      'content-security-policy': POLICY,
      'cross-origin-resource-policy': 'same-site',
      'x-content-type-options': 'nosniff',
    });
    expect((await headersOf(url, 'a.pdf'))['content-disposition']).toBe('attachment; filename="bill.pdf"');
    expect(await headersOf(url, 'a.png')).toMatchObject({
      'content-type': 'image/png',
      'content-disposition': 'inline',
    });
  });

  it('untrusted has the same headers for ranges, HEAD, 304, and the files of a source', async () => {
    const url = await serve();
    const range = await fetch(`${url}/a.html`, { headers: { range: 'bytes=0-2' } });
    expect([range.status, range.headers.get('content-security-policy')]).toEqual([206, POLICY]);
    expect((await headersOf(url, 'a.html', { method: 'HEAD' }))['content-security-policy']).toBe(POLICY);
    const etag = range.headers.get('etag') as string;
    const same = await fetch(`${url}/a.html`, { headers: { 'if-none-match': etag } });
    expect([same.status, same.headers.get('content-security-policy')]).toEqual([304, POLICY]);
    const source = staticFiles(memoryFiles({ 'a.html': 'x' }), { untrusted: true });
    const { url: other } = await listen(createServer((req, res) => source(req, res, () => res.end())));
    expect(await headersOf(other, 'a.html')).toMatchObject({ 'content-type': 'application/octet-stream' });
  });
});
