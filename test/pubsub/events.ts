/** Returns the numbers from the first to the one before the last argument. */
export const numbers = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, i) => from + i);

/** Returns the next events of a stream. */
export async function take<T>(stream: AsyncIterator<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  while (taken.length < count) taken.push((await stream.next()).value);
  return taken;
}

/** Repeats a publish until the publisher is connected, which reconnects independently of subscribers. */
export async function publishWhenConnected(publish: () => Promise<void>): Promise<void> {
  for (;;) {
    const sent = await publish().then(
      () => true,
      () => false,
    );
    if (sent) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
