/** @tags node */
import { win32 } from 'node:path';
import fc from 'fast-check';
import { projectFiles } from '../../src/cli/commands.ts';
import { parseRequestPath } from '../../src/static/path.ts';
import { joinUrlPath } from '../../src/static/root.ts';

// The rules of Windows on any system: path.win32 interprets the paths as Windows does.

const ROOTS = [
  'C:\\site',
  'C:\\',
  'c:\\Program Files\\site',
  '\\\\server\\share',
  '\\\\server\\share\\site',
  '\\\\?\\C:\\site',
];

/** The path of the file that Windows would open for a request, or why the request is refused. */
function fileOf(root: string, target: string): { file: string } | { refusal: string } {
  const parsed = parseRequestPath(target, { rejectWindowsNames: true });
  if (parsed.kind === 'refused') return { refusal: parsed.reason };
  return { file: joinUrlPath(root, parsed.path, win32.sep) };
}

/** Whether a path leads to a file or folder below the root, under exactly its name. */
function isBelow(root: string, file: string): boolean {
  const relative = win32.relative(root, file);
  const isRoot = file === win32.parse(file).root;
  const withoutEnd = file.endsWith('\\') && !isRoot ? file.slice(0, -1) : file;
  return (
    relative.split('\\')[0] !== '..' &&
    !win32.isAbsolute(relative) &&
    win32.parse(file).root.toLowerCase() === win32.parse(win32.join(root, 'a')).root.toLowerCase() &&
    win32.normalize(withoutEnd) === withoutEnd &&
    !/[<>:"|?*]/.test(relative) &&
    ![...relative].some((character) => character < ' ') &&
    !relative.split('\\').some((segment) => /[. ]$/.test(segment))
  );
}

const REFUSED = {
  'a drive letter': [
    '/C:/Windows/win.ini',
    '/c:',
    '/C:win.ini',
    '/D:/',
    '/a/C:/b',
    '/%43:/Windows',
    '/C%3A/Windows',
    '/C|/Windows',
  ],
  'a UNC path': [
    '//server/share/a',
    '///server/share',
    '/\\\\server\\share',
    '/%5c%5cserver%5cshare',
    '/%2f%2fserver/share',
    '//?/C:/Windows',
    '//./C:/',
    '//./PhysicalDrive0',
    '/a//server/share',
  ],
  'a backslash': ['/a\\b', '/..\\..\\Windows', '/a%5c..%5c..%5cb', '/%5Cb', '\\a', '/..%5cb', '/.\\a'],
  'dot segments': ['/../a', '/a/../../b', '/%2e%2e/a', '/..%2fa', '/a/./b', '/.', '/..', '/%2e', '/a/.%2e/b'],
  'a reserved name': [
    '/con',
    '/CON',
    '/nul',
    '/prn.txt',
    '/aux.',
    '/aux',
    '/com1',
    '/COM9.txt',
    '/lpt1',
    '/LPT3.tar.gz',
    '/com0',
    '/conin$',
    '/CONOUT$',
    '/CONIN$.txt',
    '/a/nul/b',
    '/nul .txt',
    '/con%20',
    '/COM%C2%B9',
    '/lpt%C2%B2.txt',
    '/com%C2%B3',
    '/nul::$DATA',
    '/con.',
    '/dir/NUL.js',
  ],
  'an alternate data stream': [
    '/app.js::$DATA',
    '/app.js:secret',
    '/app.js%3a%3a$DATA',
    '/dir:$I30:$INDEX_ALLOCATION/a',
    '/dir::$INDEX_ALLOCATION/a',
    '/:a',
  ],
  'a short name': ['/PROGRA~1', '/secret~1.txt', '/a/LONGNA~2/b', '/ab1234~1.js', '/%7e1', '/web~1.con'],
  'a name that Windows shortens': [
    '/app.js.',
    '/app.js%20',
    '/app.js..',
    '/a./b',
    '/a%20/b',
    '/app.js.%20.',
    '/a/b.%20',
  ],
  wildcards: ['/*.js', '/a%3Fb', '/a%3Cb', '/a%3Eb', '/a%22b', '/a%7Cb'],
  'control characters': ['/a%00.txt', '/a%0a', '/a%1f', '/%7f'],
};

describe.each(ROOTS)('staticFiles on Windows with the root %s', (root) => {
  it.each(Object.entries(REFUSED))(
    'staticFiles on Windows refuses a request path with %s',
    (_name, targets) => {
      for (const target of targets)
        expect([target, fileOf(root, target)]).toEqual([target, { refusal: expect.any(String) }]);
    },
  );

  it.each([
    ['/index.html', 'index.html'],
    ['/a/b/c.txt', 'a\\b\\c.txt'],
    ['/console.log', 'console.log'],
    ['/common/null.js', 'common\\null.js'],
    ['/com10.txt', 'com10.txt'],
    ['/auxiliary/contents.md', 'auxiliary\\contents.md'],
    ['/caf%C3%A9%20menu.pdf', 'café menu.pdf'],
    ['/.well-known/security.txt', '.well-known\\security.txt'],
    ['/a~b.txt', 'a~b.txt'],
    ['/100%25.txt', '100%.txt'],
    ['/dir/', 'dir\\'],
    ['/', ''],
  ])('staticFiles on Windows reads the file of %s below its root', (target, relative) => {
    const expected = root.endsWith('\\') ? root + relative : `${root}\\${relative}`;
    expect(fileOf(root, target)).toEqual({ file: expected });
    expect(isBelow(root, expected)).toBe(true);
  });
});

it('names that Windows reserves are ordinary ones elsewhere', () => {
  for (const target of ['/con', '/nul.txt', '/a.txt.', '/a.txt::$DATA', '/PROGRA~1', '/c:/x']) {
    expect(parseRequestPath(target, { rejectWindowsNames: false })).toHaveProperty('path');
  }
});

it('every path that staticFiles accepts on Windows leads to exactly one name below the root', () => {
  const piece = fc.oneof(
    fc.constantFrom(...Object.values(REFUSED).flat()),
    fc.constantFrom(
      '/',
      '//',
      '\\',
      '.',
      '..',
      ':',
      '::$DATA',
      '~1',
      ' ',
      '%20',
      '%2e',
      '%2f',
      '%5c',
      'CON',
      'nul',
      'C:',
      '?',
      '*',
      '%00',
      'a',
      'b.txt',
      '$',
      '%C2%B9',
    ),
    fc.string({ maxLength: 4 }),
  );
  const targets = fc.array(piece, { maxLength: 6 }).map((pieces) => `/${pieces.join('')}`);
  let accepted = 0;
  fc.assert(
    fc.property(fc.constantFrom(...ROOTS), targets, (root, target) => {
      const found = fileOf(root, target);
      if (!('file' in found)) return;
      accepted++;
      expect([target, found.file, isBelow(root, found.file)]).toEqual([target, found.file, true]);
    }),
    { numRuns: 20_000 },
  );
  expect(accepted).toBeGreaterThan(500);
});

it.each(['C:\\work\\My App', '\\\\server\\share\\app', 'C:\\'])(
  'espalier init creates the files of a project below %s',
  (target) => {
    const template = { 'package.json': '{\n  "name": "starter"\n}', 'server/main.ts': '', '.gitignore': '' };
    const files = projectFiles(target, template, win32);
    for (const file of files.keys()) expect([file, isBelow(target, file)]).toEqual([file, true]);
    expect([...files.keys()].map((file) => win32.relative(target, file))).toEqual([
      'package.json',
      'server\\main.ts',
      '.gitignore',
    ]);
    expect([...files.values()][0]).toMatch(/"name": "(my-app|app)"/);
  },
);
