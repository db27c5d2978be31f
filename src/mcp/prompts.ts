import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatValue } from '../options/rules.ts';

/** A prompt: the text of a Markdown file with arguments. */
export interface PromptFile {
  readonly name: string;
  /** The first heading of the file. */
  readonly title: string;
  readonly arguments: readonly string[];
  readonly text: string;
}

const ARGUMENT = /\{\{\s*(\w+)\s*\}\}/g;

/**
 * Reads the prompts of a directory: `<name>.md`, whose first heading is the title, and whose `{{words}}` are arguments.
 *
 * @throws TypeError that says what cannot be read.
 */
export function readPrompts(directory: string): ReadonlyMap<string, PromptFile> {
  const names = readdirSync(directory).filter((name) => name.endsWith('.md'));
  if (names.length === 0) throw new TypeError(`${formatValue(directory)} contains no file <name>.md`);
  return new Map(
    names.sort().map((file) => {
      const name = file.slice(0, -'.md'.length);
      const text = readFileSync(join(directory, file), 'utf8').replace(/^\uFEFF/, '');
      const title = /^# +(.+)$/m.exec(text)?.[1] ?? name;
      const found = new Set([...text.matchAll(ARGUMENT)].map(([, word]) => word as string));
      return [name, { name, title, arguments: [...found], text: text.replace(/^# +.+\n+/, '') }];
    }),
  );
}

/** Fills in the arguments. Their values are not searched for arguments again. */
export const fillPrompt = ({ text }: PromptFile, values: Readonly<Record<string, unknown>>): string =>
  text.replace(ARGUMENT, (_, word: string) => (Object.hasOwn(values, word) ? String(values[word]) : ''));
