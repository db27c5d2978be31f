// Run by document-memory.test.ts in its own process with --expose-gc: it compares the memory that parsed documents retain with the estimates.
import { type Location, parse } from 'graphql';
import { retainedBytes } from '../../src/core/documents.ts';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

const TEXTS: Record<string, (index: number) => string> = {
  'list literals': (index) => `{ f(a: [${`${index}, `.repeat(1000)}]) }`,
  fields: (index) =>
    `{ ${numbers(1000)
      .map((n) => `field${n}of${index}`)
      .join(' ')} }`,
  'long strings': (index) => `{ f(a: "${`${index}`.repeat(10_000)}") }`,
  variables: (index) => `query (${numbers(300).map((n) => `$v${n}: [Int] `)}) { f${index} }`,
};

function used(): number {
  // Two collections also free what the first one only made unreachable, such as the targets of weak references.
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

const text = TEXTS[process.argv[2] as string] as (index: number) => string;
parse(text(0));
const before = used();
const documents = numbers(40).map((index) => parse(Buffer.from(text(index)).toString()));
const retained = used() - before;
const estimated = documents.reduce(
  (sum, document) => sum + retainedBytes((document.loc as Location).source.body, document),
  0,
);
process.stdout.write(JSON.stringify({ retained, estimated }));
