// The licence notices of the packages whose code is in dist/.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The name, version and licence of the packages in these folders, by folder. */
export function packagesIn(root, folders) {
  return Object.fromEntries(
    folders.map((folder) => {
      const { name, version, license } = packageAt(root, folder);
      return [folder, { name, version, license }];
    }),
  );
}

/** The package.json of a folder; undefined without one. */
export function packageAt(root, folder) {
  const file = join(root, folder, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}

/** The licence of every package, each text once. */
export function noticesOf(root, packages) {
  const byText = new Map();
  for (const [folder, { name, version, license }] of Object.entries(packages)) {
    const file = readdirSync(join(root, folder)).find((entry) => /^licen[cs]e(\.|$)/i.test(entry));
    const text = file ? readFileSync(join(root, folder, file), 'utf8').trim() : `Licence: ${license}`;
    byText.set(text, [...(byText.get(text) ?? []), `${name} ${version}`]);
  }
  const parts = Array.from(byText, ([text, names]) => `${names.join('\n')}\n\n${text}\n`);
  return ['The files in this folder contain these packages.\n', ...parts].join(`\n${'-'.repeat(80)}\n\n`);
}
