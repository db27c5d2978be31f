// The data of the application. It is in memory: replace this file by your database.
import { randomUUID } from 'node:crypto';

export interface Author {
  readonly id: string;
  readonly name: string;
}

export interface Message {
  readonly id: string;
  readonly authorId: string;
  readonly text: string;
  /** The name of a file in the directory of pictures. */
  readonly picture: string | null;
  readonly createdAt: string;
}

export class Store {
  readonly #authors = new Map<string, Author>();
  readonly #messages: Message[] = [];

  /** Returns the authors in the order of the ids, as a DataLoader expects them. */
  async findAuthors(ids: readonly string[]): Promise<(Author | Error)[]> {
    return ids.map((id) => this.#authors.get(id) ?? new Error(`There is no author ${id}`));
  }

  /** Returns the newest messages, newest first. */
  async findMessages(first: number): Promise<Message[]> {
    return this.#messages.slice(-first).reverse();
  }

  async addMessage({ name, text, picture }: NewMessage): Promise<Message> {
    const author = this.#authorOf(name);
    const createdAt = new Date().toISOString();
    const message = { id: randomUUID(), authorId: author.id, text, picture, createdAt };
    this.#messages.push(message);
    return message;
  }

  /** Adds an author that another process has stored. */
  rememberAuthor(author: Author): void {
    this.#authors.set(author.id, author);
  }

  #authorOf(name: string): Author {
    const known = [...this.#authors.values()].find((author) => author.name === name);
    const author = known ?? { id: randomUUID(), name };
    this.#authors.set(author.id, author);
    return author;
  }
}

export interface NewMessage {
  readonly name: string;
  readonly text: string;
  readonly picture: string | null;
}
