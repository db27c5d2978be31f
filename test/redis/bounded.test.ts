/** @tags once */
import { BoundedStore } from '../../src/redis/bounded.ts';

const never = new Promise<never>(() => undefined);
const fail = () => Promise.reject(new Error('down'));
let reports: string[];

const bounded = (pausesAfterError: boolean): BoundedStore =>
  new BoundedStore({
    timeout: 50,
    late: 'late',
    pausesAfterError,
    report: (error) => reports.push((error as Error).message),
  });

beforeEach(() => {
  reports = [];
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
});
afterEach(() => jest.useRealTimers());

it('a store that does not reply is reported once until it has replied', async () => {
  const store = bounded(false);
  for (let second = 0; second < 3; second++) {
    expect(store.use<string>(() => never, 'none')).toBeInstanceOf(Promise);
    expect(second > 0 ? store.use(() => 'value', 'none') : 'none').toBe('none');
    await jest.advanceTimersByTimeAsync(2000);
  }
  expect(reports).toEqual(['late']);
  expect(await store.use(async () => 'value', 'none')).toBe('value');
  await Promise.all([store.use<string>(() => never, 'none'), jest.advanceTimersByTimeAsync(2000)]);
  expect(reports).toEqual(['late', 'late']);
});

it('a store that pauses after an error is not used for a second, and reported once', async () => {
  const store = bounded(true);
  expect(await Promise.all([store.use(fail, 'none'), store.use(fail, 'none')])).toEqual(['none', 'none']);
  expect(store.use(() => 'value', 'none')).toBe('none');
  await jest.advanceTimersByTimeAsync(1000);
  expect(store.use(() => 'value', 'none')).toBe('value');
  expect(reports).toEqual(['down']);
});

it('a store that does not pause after an error reports each one', async () => {
  const store = bounded(false);
  expect([await store.use(fail, 'none'), await store.use(fail, 'none')]).toEqual(['none', 'none']);
  expect(store.use(() => 'value', 'none')).toBe('value');
  expect(reports).toEqual(['down', 'down']);
});
