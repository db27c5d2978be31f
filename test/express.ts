import express5 from 'express';
import express4 from 'express4';

/** Runs a suite under Express 4 and Express 5. The suite receives the module. */
export function eachExpress(suite: (express: typeof express5, major: 4 | 5) => void): void {
  describe.each([
    [4, express4 as unknown as typeof express5],
    [5, express5],
  ] as const)('under Express %i', (major, express) => suite(express, major));
}
