/** Waits until something holds; gives up before the test does, and says what never held. */
export async function until(holds: () => boolean, within = 9000): Promise<void> {
  const deadline = Date.now() + within;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`never held: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
