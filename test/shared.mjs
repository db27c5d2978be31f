// What all test files of a run share: a folder for the packed package. Jest calls the function before the run, and
// shared-teardown.mjs after it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

let folder;

export default function setup() {
  folder = mkdtempSync(join(tmpdir(), 'espalier-run-'));
  process.env.TEST_FOLDER = folder;
}

export function teardown() {
  rmSync(folder, { recursive: true, force: true });
}
