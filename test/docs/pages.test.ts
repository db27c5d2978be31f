/** @tags once */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { makeFolder } from '../kit.ts';
import { pages, root } from '../snippets.ts';

const read = (name: string): string => readFileSync(join(root, name), 'utf8');

/** Runs a script as an ES module in the repository, and returns what it prints as JSON. */
function evaluate(script: string, ...words: string[]): unknown {
  const args = ['--input-type=module', '--eval', script, ...words];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

const docs = pages.filter((page) => page.startsWith('docs/')).map((page) => page.slice('docs/'.length));
const listed = evaluate(
  "import { LISTED } from './site/sidebar.mjs'; console.log(JSON.stringify(LISTED))",
) as string[];

describe('the pages of docs/', () => {
  it('site/sidebar.mjs lists every page of docs/, and no page that does not exist', () => {
    const written = docs.filter((page) => !page.startsWith('api/'));
    expect(listed.toSorted()).toEqual(written.sort());
  });

  it('docs/README.md links every guide', () => {
    const linked = [...read('docs/README.md').matchAll(/\]\(([\w./-]+\.md)/g)].map(([, page]) => page);
    const guides = docs.filter((page) => !page.includes('/') && page !== 'README.md');
    expect(guides.filter((page) => !linked.includes(page))).toEqual([]);
  });

  it('every line of a code block has at most 80 columns', () => {
    // A header and a shell command that cannot be wrapped.
    const allowed = ['default-src', 'connect-src', 'curl -gN'];
    const wide = [
      'README.md',
      ...docs.filter((page) => !page.startsWith('api/')).map((page) => `docs/${page}`),
    ]
      .flatMap((page) => [...read(page).matchAll(/^```.*\n([\s\S]*?)^```/gm)].map(([, code]) => [page, code]))
      .flatMap(([page, code]) => (code as string).split('\n').map((line) => `${page}: ${line}`))
      .filter((line) => line.slice(line.indexOf(': ') + 2).length > 80);
    expect(wide.filter((line) => !allowed.some((start) => line.includes(start)))).toEqual([]);
  });

  it('every link to a heading names a heading that exists', () => {
    const slugs = evaluate(
      `import { readFileSync } from 'node:fs';
       import { slugify } from './site/markdown.mjs';
       const headings = (page) => readFileSync(page, 'utf8').replace(/^\`\`\`[\\s\\S]*?^\`\`\`/gm, '').matchAll(/^#+ (.*)$/gm);
       const text = (heading) => heading.replace(/\\[([^\\]]*)\\]\\([^)]*\\)/g, '$1');
       const list = process.argv.slice(1).map((page) => [page, [...headings(page)].map(([, each]) => slugify(text(each)))]);
       console.log(JSON.stringify(Object.fromEntries(list)));`,
      ...pages,
    ) as Record<string, string[]>;
    const broken: string[] = [];
    for (const page of pages) {
      for (const [, path, id] of read(page).matchAll(/\]\(([\w./-]*\.md)?#([^)\s]+)\)/g)) {
        const target = path === undefined ? page : join(dirname(page), path);
        if (slugs[target]?.includes(id as string) === false) broken.push(`${page}: ${target}#${id}`);
      }
    }
    expect(broken).toEqual([]);
  });
});

describe('the generated parts of docs/', () => {
  it('docs/api and the diagrams are current: npm run docs', () => {
    const { stdout } = spawnSync(process.execPath, ['scripts/docs.mjs', '--check'], {
      cwd: root,
      encoding: 'utf8',
    });
    expect(stdout).toBe('');
  });

  it('every export of the package has a docstring', () => {
    const rows = read('docs/api/README.md').match(/^\| \[`.*$/gm) ?? [];
    expect(rows.length).toBeGreaterThan(80);
    expect(rows.filter((row) => / \| +\|$/.test(row))).toEqual([]);
  });

  it('docs/api has a page with a heading for each entry of package.json', () => {
    const { exports } = JSON.parse(read('package.json')) as { exports: Record<string, unknown> };
    const entries = Object.keys(exports).filter((name) => !name.endsWith('.json'));
    for (const name of entries) {
      const subpath = name.slice(2);
      const page = read(`docs/api/${subpath.replaceAll('/', '-') || 'espalier'}.md`);
      expect(page.split('\n')[0]).toBe(`# espalier${subpath === '' ? '' : `/${subpath}`}`);
    }
  });

  it('the reference contains overloads, inherited members and defaults', () => {
    const server = read('docs/api/server.md');
    expect(server).toContain(
      'options: Http2Options): http2.Http2Server & ServerHealth;\nfunction createServer(app: App, options: Http',
    );
    expect(server).toContain('| `http2?` | `false` | `false` |');
    expect(read('docs/api/graphql.md')).toContain('const Upload: GraphQLScalarType<UploadedFile, never>;');
  });
});

describe('the link check of the site', () => {
  const folder = makeFolder();

  /** Problems of a site with these pages, below /docs/. */
  function check(contents: Record<string, string>): unknown {
    for (const [name, text] of Object.entries(contents)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    return evaluate(
      `import { brokenLinks } from './site/links.mjs';
       console.log(JSON.stringify(await brokenLinks(process.argv[1], '/docs/')));`,
      resolve(folder),
    );
  }

  it('the link check reports pages, headings and files that do not exist', () => {
    const problems = check({
      'index.html':
        '<a href="/docs/guide#start">a</a> <a href="/docs/guide#absent">b</a> <a href="/docs/other">c</a> <img src="/docs/x.svg">',
      'guide.html':
        '<h2 id="start"></h2> <a href="./">d</a> <a href="/">e</a> <a href="https://example.com/">f</a>',
    }) as string[];
    expect(problems.sort()).toEqual([
      'guide.html: /: outside of the site',
      'index.html: /docs/guide#absent: no such heading',
      'index.html: /docs/other: not found',
      'index.html: /docs/x.svg: not found',
    ]);
  });
});
