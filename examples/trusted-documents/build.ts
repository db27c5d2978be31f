// The build step of the front end: `npx tsx examples/trusted-documents/build.ts`. It writes the manifest for the server
// and the ids for the page. Client compilers such as graphql-codegen's do the same.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { concatAST, Kind, parse, print, separateOperations } from 'graphql';

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const sources = readdirSync(path('operations')).sort();
const all = concatAST(sources.map((name) => parse(readFileSync(path(`operations/${name}`), 'utf8'))));

const documents: Record<string, string> = {};
const ids: Record<string, string> = {};
// Each operation becomes a document with the fragments that it uses.
for (const [name, document] of Object.entries(separateOperations(all))) {
  if (!document.definitions.some(({ kind }) => kind === Kind.OPERATION_DEFINITION)) continue;
  const text = print(document);
  const id = createHash('sha256').update(text).digest('hex');
  documents[id] = text;
  ids[name] = id;
}

writeFileSync(path('persisted-documents.json'), `${JSON.stringify(documents, undefined, 2)}\n`);
writeFileSync(path('public/operations.js'), `export const ids = ${JSON.stringify(ids, undefined, 2)};\n`);
console.log(`${Object.keys(documents).length} documents in persisted-documents.json`);
