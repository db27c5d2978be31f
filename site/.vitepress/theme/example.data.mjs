// The command and the end of the example in README.md, which tests run; the code as highlighted HTML.
import { readFileSync } from 'node:fs';
import { createMarkdownRenderer } from 'vitepress';

const README = new URL('../../../README.md', import.meta.url);

export default {
  watch: [README.pathname],
  async load() {
    const readme = readFileSync(README, 'utf8');
    const [, install] = /```sh\n([\s\S]*?)```/.exec(readme);
    const [, code] = /```js[^\n]*\n([\s\S]*?)```/.exec(readme);
    const app = code.slice(code.indexOf('const app')).replace(/^mkdirSync.*\n/m, '');
    const shown = app.replace(/ \/\/ .*$/gm, '');
    const theme = { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' };
    const md = await createMarkdownRenderer('.', { theme });
    const { highlight } = md.options;
    return { install: install.trim(), html: await highlight(shown.trimEnd(), 'js', '') };
  },
};
