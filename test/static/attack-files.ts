// Files that try to run a script on the origin that serves them. A script that runs writes `RAN <name>` to the console, which a
// test sees whatever policy the page has.

const run = (name: string): string => `console.log('RAN ${name}')`;
const tag = (name: string): string => `<script>${run(name)}</script>`;
const html = (name: string): string =>
  `<!doctype html><title>x</title>${tag(name)}<img src=x onerror="${run(name)}">`;
const xhtml = (name: string): string =>
  `<html xmlns="http://www.w3.org/1999/xhtml"><body>${tag(name)}</body></html>`;
const svg = (name: string): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" onload="${run(name)}">${tag(name)}<rect width="9" height="9"/></svg>`;
const bom16 = (text: string): Buffer => Buffer.from(`\ufeff${text}`, 'utf16le');

/** The files of the attack by their names. */
export function attackFiles(png: Buffer): Record<string, string | Buffer> {
  const files: Record<string, string | Buffer> = {};
  const add = (name: string, content: (name: string) => string | Buffer): void => {
    files[name] = content(name.replace(/[^\w.-]/g, '_'));
  };
  for (const name of [
    'index.html',
    'page.htm',
    'UPPER.HTML',
    'a.shtml',
    'as.jpg',
    'as.png',
    'as.gif',
    'as.txt',
    'as.mp4',
  ]) {
    add(name, html);
  }
  for (const name of [
    'noextension',
    'two.png.html',
    'two.html.png',
    'dot.html.',
    'a.phtml',
    'a.unknown',
    'a.hta',
  ]) {
    add(name, html);
  }
  for (const name of ['a.xhtml', 'a.xht', 'a.xml', 'a.xsl', 'a.rdf', 'a.atom']) add(name, xhtml);
  for (const name of ['a.svg', 'a.svgz', 'svg.png', 'svg.webp']) add(name, svg);
  add('a.mht', (name) => `MIME-Version: 1.0\nContent-Type: text/html\n\n${html(name)}`);
  add(
    'a.mml',
    (name) => `<math xmlns="http://www.w3.org/1998/Math/MathML" onload="${run(name)}">${xhtml(name)}</math>`,
  );
  add('a.swf', (name) => `FWS\x09${html(name)}`);
  add(
    'a.pdf',
    (name) => `%PDF-1.7\n1 0 obj<</OpenAction<</S/JavaScript/JS(${run(name)})>>>>endobj\n${html(name)}`,
  );
  add('a.js', run);
  add('a.mjs', (name) => `${run(name)};export default 1`);
  add('a.css', (name) => `body{background:url("javascript:${run(name)}")}`);
  add('a.json', (name) => `{"a":"${tag(name)}"}`);
  add('script.png', run);
  add('script.txt', run);
  add('a.htc', html);
  // A picture and a script or a page in one file.
  add('polyglot.gif', (name) => `GIF89a/*${'\0'.repeat(20)}*/=1;${run(name)}`);
  add('polyglot.png', (name) => Buffer.concat([png, Buffer.from(html(name))]));
  add('polyglot.wav', (name) => `RIFF=1;/*WAVEfmt */${run(name)}`);
  // Other encodings of a page.
  add('utf16.txt', (name) => bom16(html(name)));
  add('utf7.txt', (name) => `+ADw-script+AD4-${run(name)}+ADw-/script+AD4-`);
  // Names that break headers.
  add('quote".html', html);
  add("semi;filename=x.png'.html", html);
  add('gnp.\u202elmth.html', html);
  add('ünï%41.html', html);
  return files;
}
