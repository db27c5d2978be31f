// The prose of a file: the same text with everything that is not prose replaced by spaces, so that offsets and
// line numbers stay right.
import { extname } from 'node:path';

const CODE = new Set(['.ts', '.mts', '.tsx', '.js', '.mjs', '.cjs']);
/** Marks at the start of a line inside a comment, a quotation or a list. */
const LINE_MARKS = /^[ \t]*(?:\/\/+|\/?\*+|#+|>)/gm;
/** A comment, a quoted string, a name or number, or any other character. */
const TOKEN =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"|[\w$#]+|[\s\S]/gy;
const REGEX = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
/** Text of a template up to its end or to the next expression. */
const TEMPLATE = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y;
/** Tokens after which a slash begins a regular expression. */
const BEFORE_REGEX =
  /^(?:[([{}=,;:!?&|+*%<>~^-]|return|typeof|case|in|of|do|else|void|delete|throw|new|await|yield)$/;
const BEFORE_SPECIFIER = /^(?:from|import)$/;

export const CHECKED = /\.(?:m?ts|tsx|[mc]?js|md|html|css|ya?ml|svg)$/;

const blank = (text) => text.replace(/[^\n]/g, ' ');

/** Keeps comments, strings and templates. Names and module specifiers are code. */
function proseOfCode(text) {
  let prose = '';
  let at = 0;
  let previous = ';';
  // Open braces of each template expression, innermost last.
  const depths = [];
  const match = (pattern) => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  };
  const keep = (token) => {
    prose += token;
    at += token.length;
  };
  const readTemplate = () => {
    const token = match(TEMPLATE) ?? text.slice(at);
    keep(token);
    if (token.endsWith('${')) depths.push(0);
    else previous = '`';
  };

  while (at < text.length) {
    const regex = text[at] === '/' && BEFORE_REGEX.test(previous) ? match(REGEX) : undefined;
    const isComment = text.startsWith('//', at) || text.startsWith('/*', at);
    const token = regex !== undefined && !isComment ? regex : match(TOKEN);
    if (isComment || regex === token) {
      if (!isComment) previous = '/';
      keep(token);
    } else if (/^['"]./.test(token)) {
      keep(BEFORE_SPECIFIER.test(previous) ? blank(token) : token);
      previous = token[0];
    } else if (token === '`') {
      keep(token);
      readTemplate();
    } else if (token === '}' && depths.at(-1) === 0) {
      depths.pop();
      keep(token);
      readTemplate();
    } else {
      if (depths.length > 0 && token === '{') depths.push(depths.pop() + 1);
      if (depths.length > 0 && token === '}') depths.push(depths.pop() - 1);
      prose += /^[\w$#]/.test(token) ? blank(token) : token;
      at += token.length;
      if (token.trim() !== '') previous = token;
    }
  }
  return prose;
}

/** Puts the text between tags of JSX back into the prose. */
function withJsxText(text, prose) {
  let result = prose;
  for (const { index, 0: part } of text.matchAll(/>[^<>{}=;()]*\s[^<>{}=;()]*</g)) {
    result = result.slice(0, index) + part + result.slice(index + part.length);
  }
  return result;
}

/** @param {string} file @param {string} text */
export function proseOf(file, text) {
  const extension = extname(file);
  if (!CODE.has(extension)) return text.replace(/\]\([^)\s]*\)/g, blank).replace(LINE_MARKS, blank);
  const prose = proseOfCode(text);
  return (extension === '.tsx' ? withJsxText(text, prose) : prose).replace(LINE_MARKS, blank);
}

/** Lines of a Markdown file over `most` columns, outside code blocks and tables. A line with an address only may be long. */
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
