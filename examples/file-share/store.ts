import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { UploadedFile } from 'espalier';

export interface Person {
  readonly id: string;
  readonly name: string;
}

export interface SharedFile {
  readonly id: string;
  readonly name: string;
  readonly size: number;
  readonly ownerId: string;
  readonly readers: Set<string>;
}

/** Keeps people and the list of files in memory, and the content of the files in a folder. A real app has a database. */
export class Store {
  readonly folder: string;
  readonly #people = new Map<string, Person>();
  readonly #files = new Map<string, SharedFile>();

  constructor(folder: string) {
    this.folder = folder;
  }

  signIn(name: string): Person {
    const known = [...this.#people.values()].find((person) => person.name === name);
    const person = known ?? { id: randomUUID(), name };
    this.#people.set(person.id, person);
    return person;
  }

  /** One lookup for all ids, in the order of the ids, as DataLoader needs it. */
  async findPeople(ids: readonly string[]): Promise<(Person | undefined)[]> {
    return ids.map((id) => this.#people.get(id));
  }

  findPerson(name: string): Person | undefined {
    return [...this.#people.values()].find((person) => person.name === name);
  }

  /** The content gets the id as its name on disk: clients choose `filename`. */
  async add(ownerId: string, upload: UploadedFile): Promise<SharedFile> {
    const id = randomUUID();
    const size = await upload.saveTo(join(this.folder, id));
    const file = { id, name: upload.filename, size, ownerId, readers: new Set([ownerId]) };
    this.#files.set(id, file);
    return file;
  }

  find(id: string): SharedFile | undefined {
    return this.#files.get(id);
  }

  /** The files that a person may read and whose names contain the text, oldest first. */
  filesFor(personId: string, text = ''): SharedFile[] {
    return [...this.#files.values()].filter(
      ({ name, readers }) => readers.has(personId) && name.includes(text),
    );
  }
}
