/** Waits until a condition is true. Throws before the test times out, with the condition in the message. */
export async function until(holds: () => boolean, within = 45_000): Promise<void> {
  const deadline = Date.now() + within;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`never true: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
