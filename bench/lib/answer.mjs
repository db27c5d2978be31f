/** Answers each message of the parent with what `handle` returns, or with its error. */
export function answerMessages(handle) {
  process.on('message', async (message) => {
    try {
      process.send(await handle(message));
    } catch (error) {
      process.send({ error: error.stack ?? String(error) });
    }
  });
  process.on('disconnect', () => process.exit());
}
