import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../snippets.ts';

/** A code block of docs/tutorial.md: `kind` is its language, `argument` what follows the word "tutorial". */
interface Step {
  readonly section: string;
  readonly kind: string;
  readonly argument: string;
  readonly code: string;
}

/** The code blocks of the tutorial, in their order. */
export function tutorialSteps(): Step[] {
  const text = readFileSync(join(root, 'docs/tutorial.md'), 'utf8');
  return text.split(/^## /m).flatMap((part) => {
    const section = part.slice(0, part.indexOf('\n'));
    const blocks = part.matchAll(/^```(\w+) tutorial ?(.*)\n([\s\S]*?)^```/gm);
    return [...blocks].map(([, kind, argument, code]) => ({
      section,
      kind: kind as string,
      argument: argument as string,
      code: code as string,
    }));
  });
}

/** The content of a file after a step: new, with another last line, or with lines before a given one. */
export function applyStep(content: string, mode: string, code: string): string {
  if (mode === '') return code;
  const lines = content.trimEnd().split('\n');
  if (mode === 'last') return `${lines.slice(0, -1).join('\n')}\n${code}`;
  const place = mode.replace(/^before /, '');
  const index = lines.findIndex((line) => line.includes(place));
  if (!mode.startsWith('before ') || index < 0)
    throw new Error(`The tutorial changes an unknown place: ${mode}`);
  const indent = /^ */.exec(lines[index] as string)?.[0] ?? '';
  lines.splice(
    index,
    0,
    ...code
      .trimEnd()
      .split('\n')
      .map((line) => indent + line),
  );
  return `${lines.join('\n')}\n`;
}

/** The instructions of a Dockerfile with their arguments. */
export function instructionsOf(dockerfile: string): [instruction: string, rest: string][] {
  return [...dockerfile.matchAll(/^([A-Z]+) (.*)$/gm)].map(([, name, rest]) => [
    name as string,
    rest as string,
  ]);
}
