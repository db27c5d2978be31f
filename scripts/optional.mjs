import { readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

// The modules that are loaded with the first use of an option, or the first mistake, are listed in these files.
const LISTS = ['core/optional', 'graphql/optional', 'options/rules', 'pages/optional', 'static/optional'].map(
  (name) => `src/${name}.ts`,
);
const FOLDER = 'lib/optional';
const ENTRY = /(\w+): once\(\(\) => require\('([^']+)'\)\)/g;

/** The optional modules: the path of each source, and its name. */
export function readOptional(root) {
  return new Map(
    LISTS.flatMap((list) => {
      const entries = [...readFileSync(join(root, list), 'utf8').matchAll(ENTRY)];
      return entries.map(([, name, path]) => [join(root, dirname(list), path), name]);
    }),
  );
}

/** The path in `lib` of the function that makes an optional module of the ES modules. */
export const makerOf = (name) => `./optional/${name}.make.cjs`;

/** Names the file of an optional module. */
export const optionalFileName = (modules, extension) => (chunk) => {
  const name = chunk.isDynamicEntry ? modules.get(chunk.facadeModuleId) : undefined;
  return name === undefined ? `[name].${extension}` : `${FOLDER}/${name}.${extension}`;
};

/**
 * Writes a file for each optional module. It is loaded at once, so `import()` does not load it. Nor does `require` of an
 * ES module: Jest has none, and loaders that compile ES modules would load second copies of all that it imports. So the
 * module becomes a function in a CommonJS file, which gets what it imports from the ES module that needs it.
 */
export function splitOptional(modules, format) {
  return {
    name: 'split-optional',
    // Rolldown splits modules at `import()`.
    transform(code, id) {
      if (!LISTS.some((list) => id.replaceAll('\\', '/').endsWith(`/${list}`))) return null;
      return code.replace(/^const require = .*$/m, '').replaceAll(/\brequire\((?='\.)/g, 'import(');
    },
    generateBundle(_options, bundle) {
      const chunks = Object.values(bundle).filter(({ type }) => type === 'chunk');
      const parts = chunks.filter(
        ({ facadeModuleId, isDynamicEntry }) => isDynamicEntry && modules.has(facadeModuleId),
      );
      if (parts.length !== modules.size)
        throw new Error(`${parts.length} of ${modules.size} optional modules`);
      for (const part of parts) {
        const [user, ...others] = chunks.filter(({ dynamicImports }) =>
          dynamicImports.includes(part.fileName),
        );
        if (others.length > 0) throw new Error(`${part.fileName} has two users`);
        if (format === 'cjs') requirePart(user, part);
        else {
          const source = makePart(user, part, modules.get(part.facadeModuleId));
          this.emitFile({ type: 'asset', fileName: part.fileName.replace(/\.mjs$/, '.make.cjs'), source });
          delete bundle[part.fileName];
        }
      }
    },
  };
}

function requirePart(user, part) {
  const path = pathFrom(user, part.fileName);
  replaceLoad(user, `Promise.resolve().then(() => require("${path}"))`, `require("${path}")`);
}

/** Returns the text of the file of a part, and lets its user call the function in it. */
function makePart(user, part, name) {
  const given = part.code.includes('import.meta.url') ? ['url: import.meta.url'] : [];
  const lines = part.code
    .replaceAll('import.meta.url', 'modules.url')
    .replaceAll(/^import (.+) from "([^"]+)";$/gm, (_, bindings, path) => {
      const [, all, named] = /^(?:\* as (\S+)|(\{.*\}))$/.exec(bindings);
      given.push(giveModule(user, part, path, named));
      return `const ${all ?? named.replaceAll(' as ', ': ')} = modules["${path}"];`;
    });
  const code = lines.replace(
    /^export (\{[^}]*\});$/m,
    (_, names) => `return ${names.replaceAll(/(\S+) as (\S+?)(,| )/g, '$2: $1$3')};`,
  );
  if (/^(?:im|ex)port\b|\bimport\.meta\b/m.test(code))
    throw new Error(`${part.fileName} is not a plain module`);
  const path = pathFrom(user, part.fileName);
  replaceLoad(user, `import("${path}")`, `optionalModules.${name}({ ${given.join(', ')} })`);
  addImport(user, 'import { optional as optionalModules } from "#packages";');
  return `'use strict';\nmodule.exports = ((modules) => {\n${code}\n});\n`;
}

/** Returns the member for a module that a part imports. Its user has loaded it already, or is it. */
function giveModule(user, part, path, named) {
  const file = path.startsWith('.') ? posix.join(posix.dirname(part.fileName), path) : path;
  if (file === user.fileName) return `"${path}": { ${ownExports(user, named)} }`;
  if (!user.imports.includes(file))
    throw new Error(`${part.fileName} would load ${file} with ${user.fileName}`);
  const local = `module$${file.replaceAll(/\W/g, '_')}`;
  addImport(user, `import * as ${local} from "${path.startsWith('.') ? pathFrom(user, file) : path}";`);
  return `"${path}": ${local}`;
}

/** The members for the names that a part imports from its user. */
function ownExports({ code }, named) {
  const [, list] = /^export \{ (.*) \};$/m.exec(code);
  const locals = new Map(list.split(', ').map((entry) => entry.split(' as ').reverse()));
  const names = named
    .slice(2, -2)
    .split(', ')
    .map((entry) => entry.split(' as ')[0]);
  return names.map((name) => `${name}: ${locals.get(name) ?? name}`).join(', ');
}

function pathFrom({ fileName }, target) {
  const path = posix.relative(posix.dirname(fileName), target);
  return path.startsWith('.') ? path : `./${path}`;
}

function addImport(chunk, statement) {
  if (!chunk.code.includes(statement)) chunk.code = `${statement}\n${chunk.code}`;
}

function replaceLoad(chunk, load, replacement) {
  if (!chunk.code.includes(load)) throw new Error(`${chunk.fileName} does not have ${load}`);
  chunk.code = chunk.code.replaceAll(load, replacement);
}
