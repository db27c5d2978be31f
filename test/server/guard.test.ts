import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';

const child = resolve(__dirname, 'guard.child.mts');
const args = ['--allow-natives-syntax', '--import', 'tsx', child];
const told = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));

describe.each(['express', 'express4'])('requests of an app made with %s', (express) => {
  it('are born with its prototypes and share a hidden class', () => {
    expect(told[`${express}, createServer`]).toEqual({
      bornRight: true,
      sharedClasses: [true, true],
      fastProperties: [true, true],
    });
  });

  // Were this to fail, createServer would have nothing left to do.
  it('are born with others on a plain server', () => {
    expect(told[`${express}, plain`]).toMatchObject({ bornRight: false });
  });
});
