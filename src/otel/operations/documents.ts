import { createHash } from 'node:crypto';
import type { Attributes } from '@opentelemetry/api';

/** Characters of a document or of a variable in a span. */
const MAX_LENGTH = 4096;
/** Variables of one operation in a span. */
const MAX_VARIABLES = 50;

/** Returns `sha256:` and the digest of a document's text. */
export const documentHash = (source: string): string =>
  `sha256:${createHash('sha256').update(source).digest('hex')}`;

/** Comments, strings and numbers that are not part of a name. */
const VALUES = /#[^\n\r]*|"""(?:\\"""|[\s\S])*?"""|"(?:\\.|[^"\\\n\r])*"|(?<![\w$@])-?\d[\w.+-]*/g;

/** Returns the text of a document without its strings and numbers, which may contain personal data. */
export const documentText = (source: string): string =>
  source
    .replace(VALUES, (value) => (value[0] === '#' ? '' : value[0] === '"' ? '"*"' : '0'))
    .slice(0, MAX_LENGTH);

/** Returns attributes for the variables that are allowed. */
export function variableAttributes(
  variables: Readonly<Record<string, unknown>> | undefined,
  allowed: true | readonly string[],
): Attributes {
  const attributes: Attributes = {};
  const names = Object.keys(variables ?? {}).filter((name) => allowed === true || allowed.includes(name));
  for (const name of names.slice(0, MAX_VARIABLES)) {
    attributes[`graphql.variables.${name}`] = formatVariable(variables?.[name]);
  }
  return attributes;
}

/** Formats a variable as JSON. Files of uploads, and other values without JSON, become the name of their type. */
function formatVariable(value: unknown): string {
  try {
    return (JSON.stringify(value) ?? typeof value).slice(0, MAX_LENGTH);
  } catch {
    return typeof value;
  }
}
