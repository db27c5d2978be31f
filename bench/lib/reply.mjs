/** Replies to each message of the parent with the result of `handle`, or with its error. */
export function replyToMessages(handle) {
  process.on('message', async (message) => {
    try {
      process.send(await handle(message));
    } catch (error) {
      process.send({ error: error.stack ?? String(error) });
    }
  });
  process.on('disconnect', () => process.exit());
}
