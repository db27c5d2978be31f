import { once } from 'node:events';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync } from 'node:zlib';
import express from 'express';
import fc from 'fast-check';
import { createServer } from '../../middleware/server.ts';
import { staticFiles } from '../../middleware/static.ts';
import { linkHeaderOf } from '../../src/static/hints/link-header.ts';
import { readHead } from '../../src/static/hints/read-head.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { bare, get, listen, makeFolder, put } from './fixture.ts';

const PAGE = `<!DOCTYPE html>
<!-- <link rel="stylesheet" href="/comment.css"> -->
<html lang="en"><head>
<meta charset="utf-8"><title>a <link rel=stylesheet href=/title.css></title>
<link rel="icon" href="/icon.png">
<link rel="stylesheet" crossorigin href="/assets/app-1a2b.css">
<script type="module" crossorigin src="/assets/app-3c4d.js"></script>
<script>const html = '<link rel="stylesheet" href="/script.css">';</script>
<link rel="preload" as="font" type="font/woff2" href="/fonts/a.woff2" crossorigin>
</head><body><link rel="stylesheet" href="/body.css"></body></html>`;
const LINK = [
  '</assets/app-1a2b.css>; rel=preload; as=style; crossorigin',
  '</assets/app-3c4d.js>; rel=modulepreload; crossorigin',
  '</fonts/a.woff2>; rel=preload; as=font; crossorigin',
].join(', ');

describe('linkHeaderOf', () => {
  const head = (html: string): string | undefined => linkHeaderOf(Buffer.from(html));

  it.each([
    ['a whole page', PAGE, LINK],
    ['upper case and no quotes', '<LINK REL=StyleSheet HREF=/a.css>', '</a.css>; rel=preload; as=style'],
    ['single quotes', "<link href='/a.css' rel='stylesheet'>", '</a.css>; rel=preload; as=style'],
    [
      'letters whose lower case is longer',
      '<title>İİ</title><script>"İ"</SCRIPT><link rel=stylesheet href=/a.css>',
      '</a.css>; rel=preload; as=style',
    ],
    ['a relative URL', '<script type=module src="./a.js"></script>', '<./a.js>; rel=modulepreload'],
    [
      'another host',
      '<link rel=stylesheet href=//cdn.example/a.css>',
      '<//cdn.example/a.css>; rel=preload; as=style',
    ],
    ['references', '<link rel=stylesheet href="/a?b=1&amp;c=&#50;">', '</a?b=1&c=2>; rel=preload; as=style'],
    [
      'characters to encode',
      '<link rel=stylesheet href="/ä b<>.css">',
      '</%C3%A4%20b%3C%3E.css>; rel=preload; as=style',
    ],
    ['a base', '<base href="/app/"><link rel=stylesheet href=a.css>', '</app/a.css>; rel=preload; as=style'],
    [
      'a base on another host',
      '<base href="https://x.example/y/"><link rel=stylesheet href=a.css>',
      '<https://x.example/y/a.css>; rel=preload; as=style',
    ],
    [
      'a base and a URL with a host',
      '<base href="/app/"><link rel=stylesheet href="//h/a.css">',
      '<//h/a.css>; rel=preload; as=style',
    ],
    [
      'credentials',
      '<script type=module src=/a.js crossorigin=use-credentials></script>',
      '</a.js>; rel=modulepreload; crossorigin=use-credentials',
    ],
    [
      'integrity',
      '<link rel=stylesheet href=/a.css integrity=sha384-AB/+=>',
      '</a.css>; rel=preload; as=style; integrity=sha384-AB/+=',
    ],
    ['modulepreload', '<link rel=modulepreload href=/a.js>', '</a.js>; rel=modulepreload'],
    [
      'duplicates',
      '<link rel=stylesheet href=/a.css><link rel=stylesheet href=/a.css>',
      '</a.css>; rel=preload; as=style',
    ],
    ['media: all', '<link rel=stylesheet media=all href=/a.css>', '</a.css>; rel=preload; as=style'],
    [
      'no head tag',
      '<!doctype html><link rel=stylesheet href=/a.css><p>text',
      '</a.css>; rel=preload; as=style',
    ],
  ])('linkHeaderOf returns the links for %s', (_name, html, expected) => {
    expect(head(html)).toBe(expected);
  });

  it.each([
    ['a print style', '<link rel=stylesheet media=print href=/a.css>'],
    ['an alternate style', '<link rel="alternate stylesheet" href=/a.css>'],
    ['a disabled style', '<link rel=stylesheet disabled href=/a.css>'],
    ['a classic script', '<script src=/a.js></script>'],
    ['a style in the body', '<head></head><body><link rel=stylesheet href=/a.css>'],
    ['a style after the first element of the body', '<p><link rel=stylesheet href=/a.css>'],
    ['a style in noscript', '<noscript><link rel=stylesheet href=/a.css></noscript>'],
    ['a style in a template', '<template><link rel=stylesheet href=/a.css></template>'],
    ['a data URL', '<link rel=stylesheet href="data:text/css,a{}">'],
    ['a script URL', '<script type=module src="javascript:alert(1)"></script>'],
    ['an empty URL', '<link rel=stylesheet href="">'],
    ['no URL', '<script type=module>import "/a.js"</script>'],
    ['a relative base', '<base href="app/"><link rel=stylesheet href=a.css>'],
    ['several hashes', '<link rel=stylesheet href=/a.css integrity="sha256-a sha384-b">'],
    ['a preloaded image', '<link rel=preload as=image href=/a.png>'],
    ['an unterminated comment', '<!-- <link rel=stylesheet href=/a.css>'],
    ['an unterminated tag', '<link rel=stylesheet href=/a.css'],
    ['an empty file', ''],
  ])('linkHeaderOf returns no links for %s', (_name, html) => {
    expect(head(html)).toBeUndefined();
  });

  it('linkHeaderOf limits the length of the header', () => {
    const html = Array.from({ length: 1000 }, (_, i) => `<link rel=stylesheet href=/${i}.css>`).join('');
    const value = head(html) as string;
    expect(value.length).toBeLessThanOrEqual(3072);
    expect(value.split(', ').length).toBeGreaterThan(50);
  });

  it('linkHeaderOf returns a valid header value for any text', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '<link rel=stylesheet href=',
        '<script type=module src=',
        '<base href=',
        '"',
        "'",
        '>',
        '<',
        '</script>',
        '<!--',
        '-->',
        ' ',
        '&#0;',
        '&#x10ffff;',
        '\ud800',
      ),
      fc.string({ unit: 'binary' }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const value = head(pieces.join(''));
        expect(value ?? '').toMatch(/^[\x20-\x7e]*$/);
        for (const link of value?.split(/, (?=<)/) ?? []) expect(link).toMatch(/^<[^<>"\s]+>; rel=[a-z]+/);
      }),
      { numRuns: 2000 },
    );
  });

  it.each(['<link a="', '<a ', '<!--', "<x y='<", '<script', '<link rel=stylesheet href="/a', '<title>'])(
    'readHead reads a page of 1 MiB of %j, for which quadratic time would be minutes',
    (piece) => {
      expect(readHead(piece.repeat((1 << 20) / piece.length)).length).toBeGreaterThanOrEqual(0);
    },
  );
});

describe('the earlyHints option', () => {
  const root = makeFolder({
    'index.html': PAGE,
    'index.html.br': brotliCompressSync(PAGE),
    'plain.html': '<p>no links</p>',
    'large.html': PAGE.replace('</body>', `${'x'.repeat(400_000)}</body>`),
    'app.js': '<link rel=stylesheet href=/a.css>',
  });
  const serve = (options: StaticFilesOptions): Promise<number> => listen(bare(staticFiles(root, options)));

  it.each<StaticFilesOptions>([
    { earlyHints: true },
    { earlyHints: 'link' },
    { earlyHints: '103', cache: false },
  ])('staticFiles with %o sends a Link header with pages', async (options) => {
    const port = await serve({ html: true, precompressed: true, ...options });
    for (const path of ['/', '/index.html', '/large.html']) {
      expect((await get(port, path)).headers.link).toBe(LINK);
    }
    const br = await get(port, '/', { 'Accept-Encoding': 'br' });
    expect([br.headers['content-encoding'], br.headers.link]).toEqual(['br', LINK]);
    for (const path of ['/plain.html', '/app.js']) {
      expect((await get(port, path)).headers).not.toHaveProperty('link');
    }
    const notModified = await get(port, '/', {
      'If-None-Match': (await get(port, '/')).headers.etag as string,
    });
    expect([notModified.status, notModified.headers.link]).toEqual([304, undefined]);
  });

  it('staticFiles sends no Link header by default', async () => {
    expect((await get(await serve({ html: true }), '/')).headers).not.toHaveProperty('link');
  });

  it('staticFiles sends the links of the new version when a page changes', async () => {
    const folder = makeFolder({ 'a.html': '<link rel=stylesheet href=/1.css>' });
    const port = await listen(bare(staticFiles(folder, { earlyHints: true })));
    expect((await get(port, '/a.html')).headers.link).toBe('</1.css>; rel=preload; as=style');
    put(`${folder}/a.html`, '<link rel=stylesheet href=/2.css>');
    expect((await get(port, '/a.html')).headers.link).toBe('</2.css>; rel=preload; as=style');
  });

  async function overHttp2(options: StaticFilesOptions, headers: Record<string, string>) {
    const server = createServer(express().use(staticFiles(root, { html: true, ...options })), {
      http2: true,
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const stream = session.request({ ':path': '/', ...headers });
    const early: IncomingHttpHeaders[] = [];
    stream.on('headers', (received) => early.push(received));
    const closed = once(stream, 'close');
    const [final] = await once(stream.resume(), 'response');
    await closed;
    session.close();
    server.close();
    return { early, final };
  }

  it("staticFiles with earlyHints: '103' sends a 103 before a page over HTTP/2", async () => {
    const { early, final } = await overHttp2({ earlyHints: '103' }, { 'sec-fetch-mode': 'navigate' });
    expect(final[':status']).toBe(200);
    expect(early).toHaveLength(1);
    expect(early[0]?.[':status']).toBe(103);
    expect(String(early[0]?.link)).toBe(LINK);
  });

  it.each<[string, StaticFilesOptions, Record<string, string>]>([
    ["earlyHints: 'link'", { earlyHints: 'link' }, { 'sec-fetch-mode': 'navigate' }],
    ['requests that are not navigations', { earlyHints: '103' }, { 'sec-fetch-mode': 'cors' }],
    ['HEAD', { earlyHints: '103' }, { 'sec-fetch-mode': 'navigate', ':method': 'HEAD' }],
  ])('staticFiles sends no 103 for %s', async (_name, options, headers) => {
    const { early, final } = await overHttp2(options, headers);
    expect(early).toEqual([]);
    expect(final.link).toBe(LINK);
  });

  it('staticFiles sends no 103 over HTTP/1.1', async () => {
    const port = await serve({ html: true, earlyHints: '103' });
    const response = await get(port, '/', { 'Sec-Fetch-Mode': 'navigate' });
    expect([response.status, response.headers.link]).toEqual([200, LINK]);
  });

  it('staticFiles rejects other values of earlyHints', () => {
    expect(() => staticFiles(root, Object({ earlyHints: 103 }))).toThrow(
      /option "earlyHints" is 103; accepted: false/,
    );
  });
});
