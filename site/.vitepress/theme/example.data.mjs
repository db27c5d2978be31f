// The end of the example in README.md, which tests run, as highlighted HTML.
import { readFileSync } from 'node:fs';
import { createMarkdownRenderer } from 'vitepress';

const README = new URL('../../../README.md', import.meta.url);

export default {
  watch: [README.pathname],
  async load() {
    const [, code] = /```ts\n([\s\S]*?)```/.exec(readFileSync(README, 'utf8'));
    const shown = code.slice(code.indexOf('const app')).replace(/ \/\/ .*$/gm, '');
    const theme = { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' };
    const md = await createMarkdownRenderer('.', { theme });
    return md.options.highlight(shown.trimEnd(), 'ts', '');
  },
};
