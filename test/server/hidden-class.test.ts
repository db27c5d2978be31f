/** @tags node-lines */
import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';

const child = resolve(__dirname, 'hidden-class.child.mts');
const args = ['--allow-natives-syntax', '--import', 'tsx', child];
const reported = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));

describe.each(['express', 'express4'])('requests of an app made with %s', (express) => {
  it("createServer creates requests that have the app's prototypes and share a hidden class", () => {
    expect(reported[`${express}, createServer`]).toEqual({
      bornRight: true,
      sharedClasses: [true, true],
      fastProperties: [true, true],
    });
  });

  // If this test fails, createServer is no longer necessary.
  it("http.createServer creates requests that do not have the app's prototypes", () => {
    expect(reported[`${express}, plain`]).toMatchObject({ bornRight: false });
  });
});
