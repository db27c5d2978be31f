/** @tags once */
import * as fc from 'fast-check';
import { LatencyWindow, RateHistory } from '../../src/inspect/recorder.ts';

it('LatencyWindow returns percentiles within a tenth of the exact ones for random durations', () => {
  void fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0.001, max: 60_000, noNaN: true }), { minLength: 1 }),
      (durations) => {
        const window = new LatencyWindow();
        for (const duration of durations) window.add(duration, false, 0);
        const sorted = [...durations].sort((a, b) => a - b);
        const { p50, p99, max, count } = window.read(0);
        expect(count).toBe(durations.length);
        expect(max).toBe(sorted.at(-1));
        for (const [share, value] of [
          [0.5, p50],
          [0.99, p99],
        ] as const) {
          const exact = sorted[Math.ceil(sorted.length * share) - 1] as number;
          expect(Math.abs((value as number) - exact) / exact).toBeLessThan(0.1);
        }
      },
    ),
    { numRuns: 300 },
  );
});

it('LatencyWindow drops durations after five minutes, period by period', () => {
  const window = new LatencyWindow();
  window.add(10, true, 1000);
  window.add(20, false, 200_000);
  expect(window.read(299_000)).toMatchObject({ count: 2, errors: 1 });
  expect(window.read(301_000)).toMatchObject({ count: 1, errors: 0 });
  expect(window.read(1e9)).toEqual({ count: 0, errors: 0, p50: null, p99: null, max: null });
  window.add(5, false, 1e9);
  expect(window.read(1e9).count).toBe(1);
});

it('LatencyWindow equals a plain list of the last five minutes for random additions and readings', () => {
  void fc.assert(
    fc.property(fc.array(fc.record({ wait: fc.nat(400_000), isError: fc.boolean() })), (steps) => {
      const window = new LatencyWindow();
      const list: { period: number; isError: boolean }[] = [];
      let now = 0;
      for (const { wait, isError } of steps) {
        now += wait;
        const period = Math.floor(now / 30_000);
        window.add(1, isError, now);
        list.push({ period, isError });
        const kept = list.filter((one) => one.period > period - 10);
        const { count, errors } = window.read(now);
        expect([count, errors]).toEqual([kept.length, kept.filter((one) => one.isError).length]);
      }
    }),
  );
});

it('RateHistory has one number per second, the oldest first', () => {
  const history = new RateHistory();
  for (const time of [0, 500, 1500, 119_999]) history.add(time);
  const counts = history.read(119_999);
  expect(counts).toHaveLength(120);
  expect([counts[0], counts[1], counts[119]]).toEqual([2, 1, 1]);
  expect(history.read(121_500).slice(0, 2)).toEqual([0, 0]);
  expect(history.read(1e9)).toEqual(new Array(120).fill(0));
});
