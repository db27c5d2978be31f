/** @tags once */
import { contentType, types } from 'mime-types';
import { mediaTypeOf } from '../../src/static/media-types.ts';

// mime-types has `application/node` for the first and no type for the others: no browser runs a script with these.
const SCRIPTS = ['cjs', 'es', 'es6', 'jsm'];

describe('the Content-Type of a file', () => {
  it('staticFiles sends the type that mime-types has, for each known extension', () => {
    const extensions = Object.keys(types);
    expect(extensions.length).toBeGreaterThan(1000);
    for (const extension of extensions) {
      if (SCRIPTS.includes(extension)) continue;
      for (const name of [`a.${extension}`, `a.b.${extension.toUpperCase()}`]) {
        expect([name, mediaTypeOf(name)]).toEqual([name, contentType(extension)]);
      }
    }
  });

  it.each(SCRIPTS)('staticFiles sends a script with the ending .%s as one', (extension) => {
    expect(mediaTypeOf(`lib.umd.${extension}`)).toBe('text/javascript; charset=utf-8');
  });

  it.each([
    'a',
    '.css',
    'a.',
    'a.unknown',
    'a.charset=utf-8',
    'a.css less',
    'a.|text/css',
    'a.css:',
    'a.__proto__',
    'a.ℂss',
  ])('staticFiles sends %j as binary data', (name) => {
    expect(mediaTypeOf(name)).toBe('application/octet-stream');
  });
});
