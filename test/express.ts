import express5 from 'express';
import express4 from 'express4';

type Suite = (express: typeof express5, major: 4 | 5) => void;

const majors = [
  [4, express4 as unknown as typeof express5],
  [5, express5],
] as const;

/** Runs a suite under Express 4 and Express 5. The suite receives the module. */
export function eachExpress(suite: Suite): void {
  describe.each(majors)('under Express %i', (major, express) => suite(express, major));
}
