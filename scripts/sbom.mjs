// Prints the software bill of materials of the package as CycloneDX: its dependencies in the versions of the lockfile, with
// which it was tested, and the packages whose code is a part of GraphiQL in dist/. Needs npm run build.
// `npm sbom` would leave out the latter, and dependencies that are also those of a development dependency.
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageAt } from './notices.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (file) => JSON.parse(readFileSync(join(root, file), 'utf8'));
const { packages: locked } = read('package-lock.json');
const { packages: bundled } = read('dist/graphiql/manifest.json');
const manifest = locked[''];
const own = component(manifest.name, manifest);
const components = new Map();
const dependencies = new Map([[own['bom-ref'], []]]);
dependencies.get(own['bom-ref']).push(...follow('', manifest));

for (const [folder, each] of Object.entries(bundled)) {
  const part = component(each.name, { ...locked[folder], ...each });
  const known = components.get(part['bom-ref']) ?? part;
  const properties = [{ name: 'espalier:bundled', value: 'dist/graphiql' }];
  components.set(part['bom-ref'], { ...known, properties });
}

console.log(
  JSON.stringify(
    {
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      version: 1,
      metadata: { component: own },
      components: [...components.values()],
      dependencies: Array.from(dependencies, ([ref, dependsOn]) => ({ ref, dependsOn })),
    },
    null,
    2,
  ),
);

/** Adds the dependencies of a package, and returns their references. */
function follow(folder, { dependencies: wanted = {} }) {
  return Object.keys(wanted).map((name) => {
    const path = folderOf(name, folder);
    // Some packages have the older field "licenses", which the lockfile does not repeat.
    const part = component(name, { license: packageAt(root, path)?.licenses?.[0]?.type, ...locked[path] });
    const ref = part['bom-ref'];
    if (!dependencies.has(ref)) {
      components.set(ref, part);
      dependencies.set(ref, []);
      dependencies.get(ref).push(...follow(path, locked[path]));
    }
    return ref;
  });
}

/** The folder that Node finds for a name: that of the package itself, or of one above it. */
function folderOf(name, folder) {
  const path = posix.join(folder, 'node_modules', name);
  if (locked[path] !== undefined) return path;
  if (folder === '') throw new Error(`${name} is not in package-lock.json`);
  return folderOf(name, folder.slice(0, Math.max(0, folder.lastIndexOf('node_modules/') - 1)));
}

function component(name, { version, license, integrity }) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  const sha512 = /^sha512-(\S+)/.exec(integrity ?? '')?.[1];
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    ...(license && { licenses: [{ expression: license }] }),
    ...(sha512 && { hashes: [{ alg: 'SHA-512', content: Buffer.from(sha512, 'base64').toString('hex') }] }),
  };
}
