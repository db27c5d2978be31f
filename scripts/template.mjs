import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';

// Files that npm and the commands of the template create.
const LEFT_OUT = /^(?:node_modules|dist|data|package-lock\.json)(?:\/|$)/;

/** The files of examples/starter by path, with the version of espalier that is being built. */
function readTemplate(root) {
  const folder = join(root, 'examples', 'starter');
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) =>
      join(parentPath, name)
        .slice(folder.length + 1)
        .replaceAll(sep, '/'),
    )
    .filter((name) => !LEFT_OUT.test(name))
    .sort();
  const contents = names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]);
  const template = Object.fromEntries(contents);
  template['package.json'] = template['package.json'].replace(/("espalier": )".*"/, `$1"^${version}"`);
  return template;
}

/** Writes the template as one module: npm would leave .gitignore out of the package. */
export function writeTemplate(root, dist) {
  const text = JSON.stringify(readTemplate(root), null, 1);
  writeFileSync(join(dist, 'template.cjs'), `module.exports = ${text};\n`);
}
