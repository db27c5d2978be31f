// A process with a member of the topic "photo": `process.ts <Redis URL> <ttl>`. It tells its parent when it is there.
import { presence } from '../../middleware/presence.ts';
import { createPubSub } from '../../middleware/pubsub.ts';

const [url = '', ttl] = process.argv.slice(2);
const room = presence(createPubSub({ transport: url, onError: false }), { ttl: Number(ttl) });
room.changes('photo');
room.join('photo', { id: 'crashing', data: null });
// Redis replies in order: it has stored the member.
void room.members('photo').then(() => process.send?.('there'));
