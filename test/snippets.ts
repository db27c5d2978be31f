import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const root = resolve(__dirname, '..');

/** A piece of code in the documentation. */
export interface Snippet {
  /** The page and the number of the code block in it. */
  readonly name: string;
  readonly page: string;
  readonly code: string;
}

const filesIn = (folder: string, extension: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(extension))
    .map((name) => `${folder}/${name}`)
    .sort();

/** README.md and everything in docs/. */
export const pages = ['README.md', ...filesIn('docs', '.md')];

/** Code blocks of the pages with an info string such as `ts`, `js` or `sh`. */
export function snippets(language: string): Snippet[] {
  return pages.flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8');
    const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'));
    return [...blocks].map(([, code], index) => ({
      name: `${page}-${language}-${index + 1}`.replace(/\W+/g, '-'),
      page,
      code: code as string,
    }));
  });
}

/** Names that the examples of docstrings use without a declaration. */
const PRELUDE = `import { randomUUID } from 'node:crypto';
import { attachSubscriptions, createServer, graphqlHTTP, resolveReferences, staticFiles } from 'espalier';
import { receiveFiles } from 'espalier/uploads';
import { inspect } from 'espalier/inspect';
import { mcp } from 'espalier/mcp';
import { postgres } from 'espalier/postgres';
import { createPubSub, file, redis } from 'espalier/pubsub';
import { memoryFiles } from 'espalier/sources';
import { inject, subscribe, testTransport, type TransportFactory } from 'espalier/testing';
import express, { type Request } from 'express';
import { buildSchema } from 'graphql';
import pg from 'pg';
const schema = buildSchema('type Query { hello: String } type Subscription { ticks: Int }');
const handler = graphqlHTTP(schema);
const app = express();
const server = createServer(app);
const page = '<!doctype html>';
declare const createTransport: TransportFactory;
const connectionString = 'postgres://localhost/app';
const token = 'secret';
`;

/** Code after \`@example\` in the docstrings of middleware/ and types/. */
export function docstringExamples(): Snippet[] {
  return [...filesIn('middleware', '.ts'), ...filesIn('types', '.ts')].flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8');
    const examples = text.matchAll(/@example\n((?: *\* .*\n| *\*\n)*?)(?= *\* @| *\*\/)/g);
    return [...examples].map(([, lines], index) => ({
      name: `${page.replace(/\W+/g, '-')}-${index + 1}`,
      page,
      code: `${PRELUDE}{\n${(lines as string).replace(/^ *\* ?/gm, '')}}\n`,
    }));
  });
}
