import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const script = resolve(__dirname, '../scripts/check-words.mjs');
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'words-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function check(name: string, text: string): { status: number | null; output: string } {
  const file = join(folder, name);
  writeFileSync(file, text);
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, file], { encoding: 'utf8' });
  return { status, output: (stdout + stderr).replaceAll(`${file}:`, '') };
}

// Written in parts, so that a search of the repository finds the words in the list only.
const [CALLER, CLIENT, TOLD, CREATED] = ['who.ever', 'no.body', 'to.ld', 'bo.rn'].map((word) =>
  word.replace('.', ''),
);

describe('scripts/check-words.mjs', () => {
  it('check-words accepts a file in plain words', () => {
    const text = '// The handler closes the file.\nexport const message = "The file is not readable";\n';
    expect(check('good.ts', text)).toEqual({ status: 0, output: '' });
  });

  it('check-words rejects words of the list in comments, strings and templates, with their line and other words', () => {
    const { status, output } = check(
      'bad.ts',
      [
        `/** Closed by ${CALLER} opened it. */`,
        `export const a = "${CLIENT} reads this";`,
        'it(`goes on after an answer`, () => {});',
      ].join('\n'),
    );
    expect(status).toBe(1);
    expect(output).toContain(`1 "${CALLER}": name the component`);
    expect(output).toContain(`2 "${CLIENT}": name the component`);
    expect(output).toContain('3 "goes on": continues');
    expect(output).toContain('3 "answer": response');
    expect(output).toContain('4 problems');
  });

  it('check-words rejects words that a line break and the marks of a comment separate', () => {
    const { status, output } = check('bad.ts', `/**\n * The client is\n * ${TOLD} the reason.\n */\n`);
    expect(status).toBe(1);
    expect(output).toContain(`2 "is ${TOLD}": is reported`);
  });

  it('check-words rejects docstrings that begin with a headless clause', () => {
    const { status, output } = check('bad.ts', '/** What a caller passes. */\nexport const a = 1;\n');
    expect(status).toBe(1);
    expect(output).toContain('1 "/** What": begin with a noun or a verb');
  });

  it('check-words rejects headless clauses at the start of comments of several lines', () => {
    const { output } = check(
      'bad.ts',
      '/**\n * How it ends.\n */\n\n// Why it ends, and\n// which step does.\n',
    );
    expect(output).toContain('1 "/** * How": begin with a noun');
    expect(output).toContain('5 "// Why": begin with a noun');
    expect(output).toContain('2 problems');
  });

  it('check-words does not read names and module specifiers', () => {
    const text = `import { look } from './${CREATED}.js';\nexport const answer = look.${CLIENT};\n`;
    expect(check('names.ts', text)).toEqual({ status: 0, output: '' });
  });

  it('check-words rejects words of the list in Markdown, but not in the address of a link', () => {
    const { status, output } = check(
      'bad.md',
      `See [the file](../${CREATED}.md).\n\nThe headers are ${CREATED} here.\n`,
    );
    expect(status).toBe(1);
    expect(output).toMatch(new RegExp(`^3 "${CREATED}": created\n\n1 problems`));
  });

  it('check-words rejects lines over 110 columns in Markdown outside tables and code blocks', () => {
    const long = 'word '.repeat(23).trim();
    const { status, output } = check('bad.md', `| ${long} |\n\n\`\`\`\n${long}\n\`\`\`\n\n${long}\n`);
    expect(status).toBe(1);
    expect(output).toMatch(/^7 114 columns: wrap at 110\n\n1 problems/);
  });
});
