import { startPostgres } from './test/postgres.ts';
import { readFileSync, writeFileSync } from 'node:fs';
void (async () => {
const s = await startPostgres(['fsync=off']);
writeFileSync('/tmp/pgurl', s.url);
process.on('SIGTERM', async () => { await s.remove(); process.exit(); });
setInterval(() => {}, 1000);
})();
