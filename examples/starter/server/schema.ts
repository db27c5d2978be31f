import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import SchemaBuilder from '@pothos/core';
import type DataLoader from 'dataloader';
import { Upload, type UploadedFile } from 'espalier';
import type { PubSub } from 'espalier/pubsub';
import { GraphQLError, type GraphQLSchema } from 'graphql';
import type { Author, Message, Store } from './store.ts';

/** The context of resolvers. It is new for each operation. */
export interface Context {
  readonly authors: DataLoader<string, Author>;
}

/** The payloads of events by topic. They are JSON, so they reach the subscribers of every process. */
export interface Events {
  messageAdded: { message: Message; author: Author };
  /** Published by the health check. */
  probe: null;
}

/** The services that resolvers use. */
export interface Services {
  readonly store: Store;
  readonly events: PubSub<Events>;
  /** The directory of pictures. */
  readonly pictures: string;
}

interface Types {
  Context: Context;
  Objects: { Author: Author; Message: Message };
  Scalars: {
    Upload: { Input: UploadedFile; Output: never };
    ID: { Input: string; Output: string };
  };
}

const MAX_TEXT = 500;
const MAX_NAME = 50;

export function createSchema({ store, events, pictures }: Services): GraphQLSchema {
  const builder = new SchemaBuilder<Types>({});
  builder.addScalarType('Upload', Upload);

  builder.objectType('Author', {
    fields: (t) => ({ id: t.exposeID('id'), name: t.exposeString('name') }),
  });
  builder.objectType('Message', {
    fields: (t) => ({
      id: t.exposeID('id'),
      text: t.exposeString('text'),
      createdAt: t.exposeString('createdAt'),
      // One lookup for the authors of all messages of an operation.
      author: t.field({
        type: 'Author',
        resolve: ({ authorId }, _args, { authors }) => authors.load(authorId),
      }),
      picture: t.string({
        nullable: true,
        description: 'The URL of the picture',
        resolve: ({ picture }) => (picture === null ? null : `/pictures/${picture}`),
      }),
    }),
  });

  builder.queryType({
    fields: (t) => ({
      messages: t.field({
        type: ['Message'],
        args: { first: t.arg.int({ defaultValue: 20 }) },
        resolve: (_root, { first }) => store.findMessages(Math.min(Math.max(first ?? 20, 1), 100)),
      }),
    }),
  });

  builder.mutationType({
    fields: (t) => ({
      addMessage: t.field({
        type: 'Message',
        args: {
          name: t.arg.string({ required: true }),
          text: t.arg.string({ required: true }),
          picture: t.arg({ type: 'Upload' }),
        },
        async resolve(_root, { name, text, picture }, { authors }) {
          checkLength('name', name, MAX_NAME);
          checkLength('text', text, MAX_TEXT);
          const file = picture ? await savePicture(pictures, picture) : null;
          const message = await store.addMessage({ name, text, picture: file });
          const author = await authors.load(message.authorId);
          await events.publish('messageAdded', { message, author });
          return message;
        },
      }),
    }),
  });

  builder.subscriptionType({
    fields: (t) => ({
      messageAdded: t.field({
        type: 'Message',
        subscribe: () => events.subscribe('messageAdded'),
        resolve({ message, author }) {
          store.rememberAuthor(author);
          return message;
        },
      }),
    }),
  });

  return builder.toSchema();
}

function checkLength(name: string, value: string, most: number): void {
  if (value.trim() !== '' && value.length <= most) return;
  throw badInput(`The ${name} must have 1 to ${most} characters`);
}

/** The pictures that are accepted, by their first bytes: the type that the client declares proves nothing. */
const EXTENSIONS = new Map([
  ['image/png', 'png'],
  ['image/jpeg', 'jpg'],
  ['image/webp', 'webp'],
]);

/** Saves a picture under a new name: names of clients must not become paths. */
async function savePicture(directory: string, file: UploadedFile): Promise<string> {
  const extension = EXTENSIONS.get((await file.type()) ?? '');
  if (extension === undefined) throw badInput('The picture must be a PNG, JPEG or WebP file');
  const name = `${randomUUID()}.${extension}`;
  await file.saveTo(join(directory, name));
  return name;
}

const badInput = (message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT' } });
