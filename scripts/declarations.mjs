import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';

const DECLARED =
  /^(export )?(?:declare )?(?:abstract )?(type|interface|const|let|function|class|enum|namespace) (\w+)/gm;
const IMPORT = /^import (?:type )?(?:\* as (\w+)|\{ (.*) \}) from '([^']+)';$/;
const EXPORT = /^export (type )?(?:\*|\{ (.*) \}) from '([^']+)';$/;

/**
 * Writes the declarations of each entry as one short file, for ES and for CommonJS modules, which exports names of
 * lib/types (no dependencies) and lib/graphql-types (imports graphql).
 */
export function bundleDeclarations(emitted, entries, folder) {
  const files = readDeclarations(emitted, entries);
  const groups = { types: [], 'graphql-types': [] };
  for (const file of files.values()) groups[needsGraphql(file, files) ? 'graphql-types' : 'types'].push(file);
  const groupOf = groupsOfNames(groups);
  mkdirSync(join(folder, 'lib'), { recursive: true });
  for (const [declaration, module] of [
    ['d.mts', 'mjs'],
    ['d.cts', 'cjs'],
  ]) {
    for (const [name, members] of Object.entries(groups)) {
      writeFileSync(join(folder, `lib/${name}.${declaration}`), textOfGroup(name, members, groupOf, module));
    }
    for (const name of entries) {
      const exported = exportsOf(files.get(`middleware/${name}.d.ts`), files);
      writeFileSync(join(folder, `${name}.${declaration}`), textOfEntry(exported, groupOf, module));
    }
  }
}

/** The declarations that the entries reach, each with its imports and exports. */
function readDeclarations(emitted, entries) {
  const files = new Map();
  const queue = entries.map((name) => `middleware/${name}.d.ts`);
  for (const path of queue) {
    if (files.has(path)) continue;
    const file = parse(readFileSync(join(emitted, path), 'utf8'), path);
    files.set(path, file);
    queue.push(...[...file.imports, ...file.reexports].flatMap(({ target }) => target ?? []));
  }
  return files;
}

function parse(text, path) {
  const file = {
    path,
    imports: [],
    reexports: [],
    declared: new Set(),
    values: new Set(),
    types: new Set(),
    body: '',
  };
  const body = [];
  for (const line of text.split('\n')) {
    const imported = IMPORT.exec(line);
    const exported = EXPORT.exec(line);
    if (imported) {
      const [, namespace, names, specifier] = imported;
      file.imports.push({
        namespace,
        names: namesOf(names),
        specifier,
        target: resolveTarget(path, specifier),
      });
    } else if (exported) {
      const [, typeOnly, names, specifier] = exported;
      file.reexports.push({ typeOnly, names: namesOf(names), target: resolveTarget(path, specifier) });
    } else if (/^(import|export (\*|\{ \w|default|=))/.test(line)) {
      throw new Error(`${path}: this statement is not supported here: ${line}`);
    } else if (line !== 'export {};') {
      body.push(line);
    }
  }
  file.body = body.join('\n').trim();
  for (const [, isExported, kind, name] of file.body.matchAll(DECLARED)) {
    file.declared.add(name);
    if (isExported) (/^(type|interface)$/.test(kind) ? file.types : file.values).add(name);
  }
  return file;
}

/** The names of a list of imports or exports, whose members may begin with `type`. */
function namesOf(list) {
  return list?.split(', ').map((name) => name.replace(/^type /, ''));
}

function resolveTarget(path, specifier) {
  if (!specifier.startsWith('.')) return undefined;
  return posix.join(posix.dirname(path), specifier).replace(/\.ts$/, '.d.ts');
}

function needsGraphql(file, files, seen = new Set()) {
  if (seen.has(file)) return false;
  seen.add(file);
  return [...file.imports, ...file.reexports].some(({ specifier, target }) =>
    target === undefined ? specifier === 'graphql' : needsGraphql(files.get(target), files, seen),
  );
}

/** Maps each name to the group that declares it. Names are unique among all files, so that files can be joined. */
function groupsOfNames(groups) {
  const groupOf = new Map();
  for (const [group, members] of Object.entries(groups)) {
    for (const { path, declared } of members) {
      for (const name of declared) {
        if (groupOf.has(name))
          throw new Error(`${path} declares ${name}, which another file declares as well`);
        groupOf.set(name, group);
      }
    }
  }
  return groupOf;
}

function textOfGroup(group, members, groupOf, module) {
  const outside = new Map();
  const add = (specifier, name) => outside.set(specifier, (outside.get(specifier) ?? new Set()).add(name));
  for (const { namespace, names = [], specifier, target } of members.flatMap(({ imports }) => imports)) {
    if (target === undefined) {
      for (const name of namespace === undefined ? names : [`* as ${namespace}`]) add(specifier, name);
    } else {
      for (const name of names) {
        if (!groupOf.has(name)) throw new Error(`${target} does not declare ${name}`);
        if (groupOf.get(name) !== group) add(`./${groupOf.get(name)}.${module}`, name);
      }
    }
  }
  const imports = [...outside].flatMap(([specifier, names]) => importLines(specifier, [...names].sort()));
  const bodies = members.flatMap(({ body }) => body || []);
  // Without the last line, TypeScript would export the names that are declared without `export`, too.
  return `${imports.join('\n')}\n\n${bodies.join('\n\n')}\nexport {};\n`;
}

function importLines(specifier, names) {
  const namespaces = names.filter((name) => name.startsWith('*'));
  const named = names.filter((name) => !name.startsWith('*'));
  return [
    ...namespaces.map((name) => `import type ${name} from '${specifier}';`),
    ...(named.length > 0 ? [`import type { ${named.join(', ')} } from '${specifier}';`] : []),
  ];
}

/** The exported names of a file, each with whether it is a value. */
function exportsOf(file, files) {
  const names = new Map();
  for (const name of file.types) names.set(name, false);
  for (const name of file.values) names.set(name, true);
  for (const { typeOnly, names: listed, target } of file.reexports) {
    const available = exportsOf(files.get(target), files);
    for (const name of listed ?? available.keys()) {
      if (!available.has(name)) throw new Error(`${target} does not export ${name}`);
      names.set(name, names.get(name) === true || (!typeOnly && available.get(name)));
    }
  }
  return names;
}

function textOfEntry(names, groupOf, module) {
  const groups = [...new Set([...names.keys()].map((name) => groupOf.get(name)))].sort();
  return groups
    .map((group) => {
      const members = [...names].filter(([name]) => groupOf.get(name) === group).sort();
      const lines = members.map(([name, isValue]) => `  ${isValue ? '' : 'type '}${name},`);
      return `export {\n${lines.join('\n')}\n} from './lib/${group}.${module}';\n`;
    })
    .join('');
}
