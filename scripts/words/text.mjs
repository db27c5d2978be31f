// The prose of a file: the same text with everything that is not prose replaced by spaces, so that offsets and
// line numbers stay right.
import { extname } from 'node:path';
import { parseSync } from '@swc/core';

const SYNTAX = {
  '.ts': { syntax: 'typescript', decorators: true },
  '.mts': { syntax: 'typescript' },
  '.tsx': { syntax: 'typescript', tsx: true },
  '.js': { syntax: 'ecmascript', jsx: true },
  '.mjs': { syntax: 'ecmascript' },
  '.cjs': { syntax: 'ecmascript' },
};
/** Marks at the start of a line inside a comment, a quotation or a list. */
const LINE_MARKS = /^[ \t]*(?:\/\/+|\/?\*+|#+|>)/gm;

export const CHECKED = /\.(?:m?ts|tsx|[mc]?js|md|html|css|ya?ml|svg)$/;

/** Comments, strings, templates and JSX text; names and module specifiers are code. */
function proseOfCode(text, syntax) {
  // Offsets are in bytes and continue from one parsed file to the next. The empty statement marks where the file starts.
  const { body, span } = parseSync(`;${text}`, { ...syntax, target: 'es2023', isModule: 'unknown' });
  const bytes = Buffer.from(text);
  const start = span.start + 1;
  const visit = (node) => {
    if (typeof node !== 'object' || node === null) return;
    if (node.source?.type === 'StringLiteral') blankBytes(bytes, node.source.span, start);
    if (node.type === 'PrivateName' || node.type === 'MetaProperty') blankBytes(bytes, node.span, start);
    if (node.type === 'Identifier') {
      // The span of a parameter includes its type.
      const end = node.span.start + Buffer.byteLength(node.value);
      blankBytes(bytes, { start: node.span.start, end }, start);
    }
    for (const child of Object.values(node)) visit(child);
  };
  visit(body);
  return bytes.toString();
}

function blankBytes(bytes, { start, end }, base) {
  bytes.fill(' ', start - base, end - base);
}

const blank = (text) => text.replace(/[^\n]/g, ' ');

/** @param {string} file @param {string} text */
export function proseOf(file, text) {
  const syntax = SYNTAX[extname(file)];
  const prose = syntax === undefined ? text.replace(/\]\([^)\s]*\)/g, blank) : proseOfCode(text, syntax);
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
