// The prose of a file: the same text with everything that is not prose replaced by spaces, so that offsets and
// line numbers stay right.
import { extname } from 'node:path';
import ts from 'typescript59';

const KINDS = {
  '.ts': ts.ScriptKind.TS,
  '.mts': ts.ScriptKind.TS,
  '.tsx': ts.ScriptKind.TSX,
  '.js': ts.ScriptKind.JS,
  '.mjs': ts.ScriptKind.JS,
  '.cjs': ts.ScriptKind.JS,
};
/** Marks at the start of a line inside a comment, a quotation or a list. */
const LINE_MARKS = /^[ \t]*(?:\/\/+|\/?\*+|#+|>)/gm;

export const CHECKED = /\.(?:m?ts|tsx|[mc]?js|md|html|css|ya?ml|svg)$/;

/** Comments, strings, templates and JSX text; names and module specifiers are code. */
function proseOfCode(file, text, kind) {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, false, kind);
  const cuts = [];
  const visit = (node) => {
    const specifier = ts.isImportDeclaration(node) || ts.isExportDeclaration(node);
    if (specifier && node.moduleSpecifier) cuts.push([node.moduleSpecifier.pos, node.moduleSpecifier.end]);
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) {
      cuts.push([ts.skipTrivia(text, node.pos), node.end]);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  cuts.sort(([a], [b]) => a - b);
  let prose = '';
  let end = 0;
  for (const [from, to] of cuts) {
    if (from < end) continue;
    prose += text.slice(end, from) + blank(text.slice(from, to));
    end = to;
  }
  return prose + text.slice(end);
}

const blank = (text) => text.replace(/[^\n]/g, ' ');

/** @param {string} file @param {string} text */
export function proseOf(file, text) {
  const kind = KINDS[extname(file)];
  const prose = kind === undefined ? text.replace(/\]\([^)\s]*\)/g, blank) : proseOfCode(file, text, kind);
  return prose.replace(LINE_MARKS, blank);
}

/** Lines of a Markdown file over `most` columns, outside code blocks and tables; a lone address may be long. */
export function longLines(text, most) {
  const lines = [];
  let fence = false;
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*(?:```|~~~)/.test(line)) fence = !fence;
    if (fence || /^\s*\|/.test(line) || !/\S\s+\S/.test(line.trim())) continue;
    if ([...line].length > most) lines.push({ line: index + 1, columns: [...line].length });
  }
  return lines;
}
