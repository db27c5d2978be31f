/** @tags graphql engine */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { versionInfo } from 'graphql';
import { isSupportedVersion, SUPPORTED_VERSIONS } from '../../src/execution/graphql-version.ts';

const { peerDependencies } = JSON.parse(readFileSync(resolve(__dirname, '../../package.json'), 'utf8'));

it.each([
  [15, 8, false],
  [16, 11, false],
  [16, 14, false],
  [16, 15, true],
  [16, 99, true],
  [17, 0, false],
  [17, 1, true],
  [18, 0, true],
])('graphql %i.%i is supported: %s', (major, minor, supported) => {
  expect(isSupportedVersion({ major, minor })).toBe(supported);
});

it('the installed version of graphql is supported, and package.json has the same range as the notice', () => {
  expect(isSupportedVersion(versionInfo)).toBe(true);
  expect(peerDependencies.graphql).toBe(SUPPORTED_VERSIONS);
});
