import { readdirSync, readFileSync, statSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parseManifest, type TrustedTexts } from './manifest.ts';

// A manifest is read synchronously when the middleware is created, which throws if it is wrong, and asynchronously
// when it has changed.

const EXTENSION = /\.(?:graphql|gql)$/;

/**
 * Reads the documents of a file or directory.
 *
 * @throws Error of the file system, SyntaxError or TypeError.
 */
export function readDocumentsSync(path: string): TrustedTexts {
  if (!statSync(path).isDirectory()) return parseFile(path, readFileSync(path, 'utf8'));
  const names = readdirSync(path).filter((name) => EXTENSION.test(name));
  return textsOfDirectory(
    path,
    names.map((name) => [name, readFileSync(join(path, name), 'utf8')]),
  );
}

/** Like `readDocumentsSync`, without blocking the event loop. */
export async function readDocuments(path: string): Promise<TrustedTexts> {
  if (!(await stat(path)).isDirectory()) return parseFile(path, await readFile(path, 'utf8'));
  const names = (await readdir(path)).filter((name) => EXTENSION.test(name));
  return textsOfDirectory(
    path,
    await Promise.all(names.map(async (name) => [name, await readFile(join(path, name), 'utf8')] as const)),
  );
}

/** Returns a text that differs after a change of the file, or of a document in the directory. */
export async function versionOf(path: string): Promise<string> {
  const info = await stat(path);
  if (!info.isDirectory()) return formatVersion(path, info);
  const names = (await readdir(path)).filter((name) => EXTENSION.test(name)).sort();
  const versions = await Promise.all(
    names.map(async (name) => formatVersion(name, await stat(join(path, name)))),
  );
  return versions.join('\n');
}

function formatVersion(
  name: string,
  { ino, size, mtimeMs, ctimeMs }: Record<'ino' | 'size' | 'mtimeMs' | 'ctimeMs', number>,
): string {
  return [name, ino, size, mtimeMs, ctimeMs].join(' ');
}

function parseFile(path: string, text: string): TrustedTexts {
  if (EXTENSION.test(path)) {
    throw new TypeError(
      'the file is a single document; expected: a JSON manifest, or a directory of documents',
    );
  }
  // Some tools write a byte order mark.
  return parseManifest(JSON.parse(text.replace(/^\uFEFF/, '')));
}

function textsOfDirectory(
  path: string,
  files: readonly (readonly [name: string, text: string])[],
): TrustedTexts {
  if (files.length === 0) throw new TypeError(`the directory ${path} contains no file <id>.graphql`);
  return parseManifest(new Map(files.map(([name, text]) => [name.replace(EXTENSION, ''), text])));
}
