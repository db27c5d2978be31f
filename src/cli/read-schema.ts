import { readFile } from 'node:fs/promises';
import { extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildClientSchema, buildSchema, GraphQLSchema, type IntrospectionQuery } from 'graphql';

const EXPECTED_SCHEMA =
  'not a schema; expected: SDL (.graphql), an introspection result (.json), or a module that exports the schema';

const NEEDS_NODE =
  'this version of Node does not run TypeScript; use Node 22.18 or newer, or NODE_OPTIONS="--import tsx"';

/** Reads a schema from SDL, from an introspection result, or from a module that exports it. */
export async function readSchema(file: string): Promise<GraphQLSchema> {
  const extension = extname(file);
  try {
    if (extension === '.json') return schemaOfIntrospection(JSON.parse(await readFile(file, 'utf8')));
    if (/^\.(?:graphqls?|gql|sdl)$/.test(extension)) return buildSchema(await readFile(file, 'utf8'));
    return await importSchema(file);
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const isUnknown = code === 'ERR_UNSUPPORTED_DIR_IMPORT' || code === 'ERR_UNKNOWN_FILE_EXTENSION';
    if (isUnknown && /^\.[cm]?tsx?$/.test(extension)) throw new Error(`${file}: ${NEEDS_NODE}`);
    throw new Error(`${file}: ${isUnknown ? EXPECTED_SCHEMA : message}`);
  }
}

function schemaOfIntrospection(
  result: { readonly data?: IntrospectionQuery } & IntrospectionQuery,
): GraphQLSchema {
  return buildClientSchema(result.data ?? result);
}

async function importSchema(file: string): Promise<GraphQLSchema> {
  const exported = (await import(pathToFileURL(resolve(file)).href)) as Readonly<Record<string, unknown>>;
  const defaults = exported['default'] as { readonly schema?: unknown } | undefined;
  for (const value of [exported['schema'], defaults, defaults?.schema]) {
    const schema: unknown = typeof value === 'function' ? await value() : await value;
    if (schema instanceof GraphQLSchema) return schema;
    if (Object.prototype.toString.call(schema) === '[object GraphQLSchema]') {
      throw new Error(
        'the schema belongs to another copy of graphql; install one version only (npm ls graphql)',
      );
    }
  }
  throw new Error('the module exports no schema; export it as "schema" or as the default');
}
