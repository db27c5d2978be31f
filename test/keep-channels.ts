// Node 20 drops a channel from its registry when an older channel of the same name is collected
// (nodejs/node#59910). Each test file loads the package again, so the channels of all files of a process are kept.
import diagnostics from 'node:diagnostics_channel';

// Built-in modules are the only objects that the test files of a process share.
const shared = diagnostics as typeof diagnostics & { keptChannels?: Map<string, diagnostics.Channel> };
shared.keptChannels ??= new Map();

const graphql =
  'request parse validate operation connection cost execute subscribe response stream-start stream-end';
const names = ['pubsub:publish', 'pubsub:event', 'static:request', 'uploads:request'];
for (const name of [...names, ...graphql.split(' ').map((part) => `graphql:${part}`)]) {
  if (!shared.keptChannels.has(name)) shared.keptChannels.set(name, diagnostics.channel(`espalier:${name}`));
}
