/** @tags once slow */
import { spawnSync } from 'node:child_process';
import { needs } from '../programs.ts';
import { root } from '../tarball.ts';

type Row = Record<string, string | number | null>;

/** Returns the rows that bench/capacity.mjs prints. */
function capacity(...words: string[]): Row[] {
  const args = ['bench/capacity.mjs', ...words, '--json'];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout).rows;
}

/** The names of the rows, and the members that are no numbers. */
const summary = (rows: readonly Row[]): unknown =>
  rows.map(({ server, ...figures }) => [
    server,
    Object.keys(figures).filter((name) => typeof figures[name] !== 'number'),
  ]);

it('bench/capacity.mjs measures the memory of sockets of espalier and of other packages', () => {
  const words = ['sockets', '20', '--peer=graphql-ws', '--servers=2', '--only=shared|subscribed'];
  expect(summary(capacity(...words))).toEqual([
    ['espalier, shared', []],
    ['graphql-ws, subscribed', []],
  ]);
});

it('bench/capacity.mjs measures the CPU time of events', () => {
  const words = ['events', '20', '--events=3', '--idle=0.1', '--only=shared'];
  expect(summary(capacity(...words))).toEqual([['espalier, shared', []]]);
});

it('bench/capacity.mjs measures how long clients of a stopped process are away', () => {
  const words = ['return', '20', '--drain=0.1', '--only=drained'];
  expect(summary(capacity(...words))).toEqual([['espalier, shared, drained', []]]);
});

needs('redis-server').it('bench/capacity.mjs measures the CPU time of Redis for several processes', () => {
  const words = ['pods', '2', '--events=50', '--sockets=2', '--only=shared'];
  expect(summary(capacity(...words))).toEqual([
    ['espalier, shared', []],
    ['espalier, shared', []],
  ]);
});
