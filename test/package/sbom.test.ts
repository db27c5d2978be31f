/** @tags once */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../tarball.ts';

interface Component {
  'bom-ref': string;
  name: string;
  version: string;
  licenses?: { expression: string }[];
  properties?: { value: string }[];
}

const output = execFileSync(process.execPath, ['scripts/sbom.mjs'], { cwd: root, encoding: 'utf8' });
const { components, dependencies, metadata } = JSON.parse(output) as {
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
  metadata: { component: Component };
};
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

it('the bill of materials names every dependency of the package, with its own dependencies', () => {
  const [own] = dependencies;
  expect([own?.ref, metadata.component.version]).toEqual([
    `pkg:npm/espalier@${manifest.version}`,
    manifest.version,
  ]);
  const names = own?.dependsOn.map((ref) => /npm\/(.*)@/.exec(ref)?.[1]);
  expect(names).toEqual(Object.keys(manifest.dependencies));
  const refs = components.map((each) => each['bom-ref']);
  expect(refs.length).toBe(new Set(refs).size);
  expect(dependencies.flatMap(({ dependsOn }) => dependsOn).filter((ref) => !refs.includes(ref))).toEqual([]);
  expect(components.map(({ name }) => name)).toContain('busboy'); // of multer
});

it('the bill of materials names the packages whose code is a part of GraphiQL', () => {
  const bundled = components.filter(({ properties }) => properties?.[0]?.value === 'dist/graphiql');
  const names = bundled.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['react', 'monaco-editor', '@graphiql/react', 'graphql']));
  expect(names).not.toContain('vite');
});

it('the bill of materials has a licence for every package', () => {
  const without = components.filter(({ licenses }) => !licenses?.[0]?.expression);
  expect(without).toEqual([]);
});
