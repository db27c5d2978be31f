/** @tags once */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { createPubSub, type PubSub } from '../../middleware/pubsub.ts';
import { type Member, type PresenceChange, presence } from '../../middleware/presence.ts';
import { atEnd, makeFolder } from '../kit.ts';
import { take } from '../pubsub/events.ts';
import { describePresence } from './stores.ts';

function open(options = {}): PubSub<object> {
  const events = createPubSub<object>(options);
  atEnd(() => events.close());
  return events;
}

describePresence('memory', () => {
  const events = open();
  return [events, events];
});
