// Writes llms.txt, the list of the pages for agents, and llms-full.txt, which has them all: https://llmstxt.org
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { descriptionOf } from './markdown.mjs';
import { PARTS } from './sidebar.mjs';

const SUMMARY = 'Static files, a GraphQL API with uploads, and live subscriptions as middleware for Express.';

/** Both files link the twins of the pages in Markdown, which `writeTwins` has written into the same folder. */
export function writeLlms(out, { base, version }) {
  const title = `# espalier ${version}\n\n> ${SUMMARY}\n`;
  const parts = PARTS.map(({ text, pages }) => ({
    heading: `## ${text}`,
    pages: pages
      .map(([name, file]) => ({ name, file: file.replace(/\bREADME\.md$/, 'index.md') }))
      .filter(({ file }) => existsSync(join(out, file)))
      .map(({ name, file }) => ({
        name,
        path: `${base}${file}`,
        text: readFileSync(join(out, file), 'utf8'),
      })),
  }));
  const line = ({ name, path, text }) => `- [${name}](${path}): ${firstSentence(text)}`;
  const reference = `## API\n\n- [API reference](${base}api/index.md): Every function, option and type.\n`;
  const list = parts.map(({ heading, pages }) => `${heading}\n\n${pages.map(line).join('\n')}\n`);
  writeFileSync(join(out, 'llms.txt'), [title, ...list, reference].join('\n'));
  const all = parts.flatMap(({ pages }) => pages.map(({ path, text }) => `<!-- ${path} -->\n\n${text}`));
  writeFileSync(join(out, 'llms-full.txt'), [title, ...all].join('\n'));
}

function firstSentence(text) {
  const [sentence = ''] = /^.*?[.:](?=\s|$)/.exec(descriptionOf(text) ?? '') ?? [];
  return sentence.replace(/:$/, '.');
}
