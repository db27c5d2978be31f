type Items = readonly (() => unknown)[];

/** Makes a list of items: mostly an array, otherwise another iterable or an invalid value. */
export function listOf(items: Items, kind: number, strange: boolean): object | string {
  if (strange && kind % 3 === 0) return kind % 2 === 0 ? 'no list' : { no: 'list' };
  if (kind % 5 === 0) return kind % 2 === 0 ? asyncItems(items) : handMade(items, kind);
  if (strange || kind % 11 === 0)
    return new Set(items.map(safely).map((value, index) => value ?? `s${index}`));
  if (kind % 13 === 0) return lazyItems(items);
  if (kind % 29 === 0) {
    const notRead = items.map(() => 'not read');
    return Object.assign(notRead, { [Symbol.iterator]: () => lazyItems(items) });
  }
  if (kind % 31 === 0) return Object.assign([], { length: items.length });
  return items.map(safely);
}

function safely(item: () => unknown): unknown {
  try {
    return item();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function* lazyItems(items: Items): Generator<unknown> {
  for (const item of items) yield item();
}

async function* asyncItems(items: Items): AsyncGenerator<unknown> {
  for (const item of items) yield item();
}

/** An asynchronous iterable without a generator: its steps may be promises or not, and failing ones may be thrown. */
function handMade(items: Items, kind: number): AsyncIterable<unknown> {
  let index = 0;
  const step = (): unknown => {
    const item = items[index++];
    if (item === undefined) return { done: kind % 2 === 0 ? true : 1, value: undefined };
    const value = safely(item);
    if (kind % 7 === 0 && value instanceof Error) throw value;
    const result = { done: false, value };
    return kind % 3 === 0 ? result : Promise.resolve(result);
  };
  const iterator = {
    next: step,
    ...(kind % 4 === 0 ? { return: async () => ({ done: true, value: undefined }) } : {}),
  };
  return { [Symbol.asyncIterator]: () => iterator as AsyncIterator<unknown> };
}
