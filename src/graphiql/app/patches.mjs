// What GraphiQL has no option for. The build fails when a new version of the package has changed the replaced code.
import { join } from 'node:path';

const FILE = JSON.stringify(join(import.meta.dirname, 'tab-title.ts'));

/** Colours in place of those of Monaco with a contrast below 4.5:1 on one of our backgrounds. */
const COLOURS = {
  'editorLineNumber.foreground': { light: '#53627c', dark: '#a3b0c7' },
  'editorLineNumber.dimmedForeground': { light: '#53627c', dark: '#a3b0c7' },
  'editorLineNumber.activeForeground': { light: '#1f2a3d', dark: '#ffffff' },
  'editorBracketHighlight.foreground2': { light: '#1f7a1f', dark: '#e58be2' },
  'editorBracketHighlight.foreground3': { light: '#7b3814', dark: '#5cb8ff' },
};
const TOKENS = {
  light: [{ token: 'number', foreground: '#076b46' }],
  dark: [{ token: 'comment', foreground: '#86b872' }],
};

const colours = Object.entries(COLOURS).map(
  ([name, { light, dark }]) => `"${name}": theme === "dark" ? "${dark}" : "${light}",`,
);
const tokens = (theme) => TOKENS[theme].map((rule) => `${JSON.stringify(rule)},`).join('');

/** For each file of a package, the code and what replaces it. */
const PATCHES = {
  // The tab of an operation without a name has the name of its first field.
  '@graphiql/react/dist/utility/tabs.js': [
    ['import {', `import { firstField } from ${FILE};\nimport {`],
    [' operationName || DEFAULT_TITLE', ' operationName || firstField(query) || DEFAULT_TITLE'],
    [': void 0) || DEFAULT_TITLE', ': void 0) || firstField(newTab.query) || DEFAULT_TITLE'],
  ],
  '@graphiql/react/dist/constants.js': [
    ['"scrollbar.shadow": colors.transparent,', `"scrollbar.shadow": colors.transparent,${colours.join('')}`],
    [
      'colors: getBaseColors("light"),\n\t\trules: [',
      `colors: getBaseColors("light"), rules: [${tokens('light')}`,
    ],
    [
      'colors: getBaseColors("dark"),\n\t\trules: [',
      `colors: getBaseColors("dark"), rules: [${tokens('dark')}`,
    ],
  ],
  'graphiql/dist/ui/short-keys.js': [
    ['"Execute query":', '"Leave an editor, close a panel or a dialog": "Escape",\n  "Execute query":'],
  ],
};

export const patches = {
  name: 'patches',
  transform(code, id) {
    const file = id.replaceAll('\\', '/').split('/node_modules/').at(-1);
    if (!Object.hasOwn(PATCHES, file)) return undefined;
    const patched = PATCHES[file].reduce((text, [from, to]) => {
      if (!text.includes(from)) throw new Error(`A package has changed: ${file} has no ${from}`);
      return text.replaceAll(from, to);
    }, code);
    return { code: patched, map: null };
  },
};
