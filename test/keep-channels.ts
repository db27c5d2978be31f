// Node 20 drops a channel from its registry when an older channel of the same name is collected
// (nodejs/node#59910). Each test file loads the package again, so the channels of all files of a process are kept.
import diagnostics from 'node:diagnostics_channel';

const graphql =
  'request parse validate operation connection cost execute subscribe response stream-start stream-end';
const names = [
  ...['pubsub:publish', 'pubsub:event', 'static:request', 'uploads:request'],
  ...graphql.split(' ').map((name) => `graphql:${name}`),
];

// Built-in modules are the only objects that the test files of a process share.
const shared = diagnostics as typeof diagnostics & { keptChannels?: diagnostics.Channel[] };
shared.keptChannels ??= names.map((name) => diagnostics.channel(`espalier:${name}`));
