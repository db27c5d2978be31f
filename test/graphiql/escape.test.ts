/** @tags once */
import fc from 'fast-check';
import { resolveGraphiQLOptions } from '../../src/graphiql/options.ts';
import { escapeHtml, filesBase, jsonForScript, pageRenderer } from '../../src/graphiql/page.ts';

const MALICIOUS = [
  '</script><script>alert(1)</script>',
  '</SCRIPT\u00a0x>',
  '<!--<script>',
  ']]><svg onload=alert(1)>',
  '</title></head><body onload=alert(1)>',
  `"'><img src=x onerror=alert(1)>`,
  '&lt;script&gt;',
  '\u2028\u2029\u0000\ud800',
  '$'.concat('{alert(1)}'),
];
const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(...MALICIOUS), fc.string());
const files = { entry: 'main.js', styles: ['style.css'], preload: ['libraries.js'] };

/** The tags of a page, without the text between them. */
const tagsOf = (page: string): string[] => page.match(/<[a-z!/][^>]*>/gi) ?? [];

describe('escaping of options', () => {
  it('jsonForScript escapes everything that could end the script element', () => {
    fc.assert(
      fc.property(fc.oneof(text, fc.dictionary(text, text)), (value) => {
        const json = jsonForScript(value);
        expect(json).not.toMatch(/[<>&\u2028\u2029]/);
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('escapeHtml escapes everything that could begin a tag or an entity or end an attribute', () => {
    fc.assert(
      fc.property(text, (value) => {
        expect(escapeHtml(value)).not.toMatch(/[<>"']|&(?!amp;|lt;|gt;|quot;|#39;)/);
      }),
    );
  });

  it('GraphiQL options never add a tag to the page', () => {
    const plain = tagsOf(pageRenderer(resolveGraphiQLOptions({}), files)('./graphql/__graphiql/', 'n0nce'));
    fc.assert(
      fc.property(text, (query) => {
        const settings = resolveGraphiQLOptions({ defaultQuery: query });
        expect(tagsOf(pageRenderer(settings, files)('./graphql/__graphiql/', 'n0nce'))).toEqual(plain);
      }),
    );
  });

  it('the GraphiQL page links only files of the same origin for any path', () => {
    fc.assert(
      fc.property(fc.oneof(text, fc.webPath()), (path) => {
        const base = filesBase(`/${path}`);
        const page = pageRenderer(resolveGraphiQLOptions({}), files)(base, 'n0nce');
        expect(base).toMatch(/^\.\/(?:[!#-;=?-[\]_a-z~]*\/)?__graphiql\/$/);
        expect(new URL(base, 'http://localhost/a/b').host).toBe('localhost');
        expect(tagsOf(page)).toHaveLength(
          tagsOf(pageRenderer(resolveGraphiQLOptions({}), files)('./', 'n0nce')).length,
        );
      }),
    );
  });
});
