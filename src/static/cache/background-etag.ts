import { sameBytes, sameVersion } from '../file/file-version.ts';
import { tagOfFile } from '../file/hash.ts';
import type { Entry } from '../file/loaded-file.ts';
import { openReal, versionOf } from '../file/open-contained.ts';
import { codedTag, type Representation, represent } from '../file/representation.ts';
import type { Settings } from '../options.ts';
import type { Slot } from './file-cache.ts';

/**
 * Tags files that are too large to be hashed before their first answer, one at a time and slice by slice. Until then they are
 * answered with Last-Modified alone. A tag is dropped when its file changed, or is no longer remembered.
 */
export function createTagger(settings: Settings): (slot: Slot, entry: Entry) => void {
  const queue: [Slot, Entry][] = [];
  let running = false;

  async function run(): Promise<void> {
    running = true;
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [slot, entry] = next;
      const wanted = (): boolean => slot.entry === entry;
      const tagged = await tagEntry(entry, wanted);
      if (wanted()) slot.entry = tagged;
    }
    running = false;
  }

  return (slot, entry) => {
    if (settings.etag !== 'content' || entry.young || ![entry.plain, ...entry.coded].some(isUntagged)) return;
    queue.push([slot, entry]);
    // Nothing in there rejects: a file that cannot be read is left without a tag.
    if (!running) run().catch(() => {});
  };
}

function isUntagged({ tag }: Representation): boolean {
  return tag === undefined;
}

async function tagEntry(entry: Entry, wanted: () => boolean): Promise<Entry> {
  const plain = await tagRepresentation(entry.plain, wanted);
  const coded: Representation[] = [];
  for (const representation of entry.coded) coded.push(await tagRepresentation(representation, wanted));
  return { ...entry, plain, coded };
}

async function tagRepresentation(
  representation: Representation,
  wanted: () => boolean,
): Promise<Representation> {
  if (!isUntagged(representation)) return representation;
  const { facts, modified } = representation;
  const tag = await hashVersion(representation, wanted).catch(() => undefined);
  if (tag === undefined) return representation;
  return represent(facts, representation, { tag: codedTag(tag, facts.coding), modified });
}

/** The tag of exactly the version that is described; undefined when it has changed. */
async function hashVersion(
  { realPath, identity, facts }: Representation,
  wanted: () => boolean,
): Promise<string | undefined> {
  const handle = await openReal(realPath);
  if (handle === undefined) return undefined;
  try {
    const before = await versionOf(handle);
    if (before === undefined || !sameVersion(identity, before)) return undefined;
    const tag = await tagOfFile(handle, facts.size, wanted);
    const after = await versionOf(handle);
    return after !== undefined && sameBytes(before, after) ? tag : undefined;
  } finally {
    await handle.close();
  }
}
