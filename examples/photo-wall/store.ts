import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { type Picture, PictureError, sniff } from './sniff.ts';

/** A picture on the wall. */
export interface Photo {
  /** Begins with the time it was added, so that ids sort by age. */
  id: string;
  title: string;
  file: string;
  type: string;
  width: number;
  height: number;
  bytes: number;
  addedAt: string;
}

/** The pictures of the wall: files in a folder, each with a JSON file of metadata. */
export interface Store {
  /** The folder to serve. It contains only pictures. */
  readonly pictures: string;
  /** The folder of pictures that are not on the wall. They are for those who have a link. */
  readonly unlisted: string;
  /** Newest first. */
  list(first: number, before?: string | null): Promise<Photo[]>;
  /** Checks and stores the bytes. Throws and stores nothing if they are not a picture. */
  add(name: string, bytes: Uint8Array, addedAt?: Date): Promise<Photo>;
  /** The same for a picture that is not on the wall. Returns the name of its file, which exists for a day. */
  addUnlisted(bytes: Uint8Array): Promise<string>;
}

/** Opens the store in `folder`. A new store gets the pictures in `examples`. Several processes may share it. */
export async function openStore(folder: string, examples: URL): Promise<Store> {
  const pictures = join(folder, 'pictures');
  const unlisted = join(folder, 'unlisted');
  const notes = join(folder, 'photos');
  const known = new Map<string, Photo>();
  for (const each of [pictures, unlisted]) await mkdir(each, { recursive: true });
  // A killed process leaves partial files.
  await removeOld(pictures, { suffix: '.part', age: HOUR });

  const store: Store = {
    pictures,
    unlisted,

    async list(first, before) {
      const ids = (await readdir(notes))
        .filter((name) => name.endsWith('.json'))
        .map((name) => parse(name).name);
      const wanted = ids
        .filter((id) => before == null || id < before)
        .sort()
        .reverse()
        .slice(0, first);
      return Promise.all(wanted.map(read));
    },

    async add(name, content, addedAt = new Date()) {
      const { extension, bytes, ...facts } = check(content);
      const id = `${addedAt.getTime().toString(36).padStart(9, '0')}-${randomBytes(4).toString('hex')}`;
      const photo = { id, title: titleOf(name), file: `${id}.${extension}`, ...facts };
      const whole = { ...photo, bytes: bytes.length, addedAt: addedAt.toISOString() };
      // The picture first: a reader that finds the metadata finds the picture too.
      await writeAtomically(join(pictures, photo.file), bytes);
      await writeAtomically(join(notes, `${id}.json`), JSON.stringify(whole));
      return whole;
    },

    async addUnlisted(content) {
      const { extension, bytes } = check(content);
      const file = `${randomBytes(16).toString('hex')}.${extension}`;
      await removeOld(unlisted, { age: 24 * HOUR });
      await writeAtomically(join(unlisted, file), bytes);
      return file;
    },
  };

  async function read(id: string): Promise<Photo> {
    const photo = known.get(id) ?? JSON.parse(await readFile(join(notes, `${id}.json`), 'utf8'));
    known.set(id, photo);
    return photo;
  }

  // Only one process creates the folder, even if two start in the same moment.
  const isNew = await mkdir(notes).then(
    () => true,
    () => false,
  );
  if (isNew) await addExamples(store, examples);
  return store;
}

/** Adds the example pictures, some minutes apart. */
async function addExamples(store: Store, examples: URL): Promise<void> {
  const names = (await readdir(examples)).sort();
  for (const [index, name] of names.entries()) {
    const addedAt = new Date(Date.now() - (names.length - index) * 17 * 60_000);
    await store.add(name, await readFile(new URL(name, examples)), addedAt);
  }
}

/** Writes a file atomically: it appears under its name only when it is complete. */
async function writeAtomically(path: string, content: string | Buffer): Promise<void> {
  const part = `${path}.part`;
  try {
    await writeFile(part, content, { flag: 'wx' });
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

const HOUR = 3_600_000;

/** Removes files that were written longer ago than `age` milliseconds. */
async function removeOld(
  folder: string,
  { suffix = '', age }: { suffix?: string; age: number },
): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    // Another process may have removed it.
    const written = await stat(path).catch(() => undefined);
    if (name.endsWith(suffix) && Date.now() - (written?.mtimeMs ?? Date.now()) > age)
      await rm(path, { force: true });
  }
}

/** Throws a PictureError for bytes that are no picture. */
function check(content: Uint8Array): Picture & { bytes: Buffer } {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  const picture = sniff(bytes);
  if (picture !== undefined) return { ...picture, bytes };
  throw new PictureError('This file is not a PNG, JPEG, GIF, WebP or AVIF picture.');
}

/** `moon_on-the-lake.final.png` → `Moon on the lake final`. */
function titleOf(name: string): string {
  const words = parse(name)
    .name.replace(/[\s._-]+/g, ' ')
    .trim()
    .slice(0, 80);
  return words === '' ? 'Untitled' : (words[0] as string).toUpperCase() + words.slice(1);
}
