import type { UploadedFile } from 'espalier';
import { Upload } from 'espalier';
import type { Presence } from 'espalier/presence';
import { latest, map, type PubSub } from 'espalier/pubsub';
import {
  GraphQLError,
  GraphQLID,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql';
import type { Photo, Store } from './store.ts';

/** The events of the wall. */
export interface Events {
  photoAdded: Photo;
}

const MAX_PAGE = 100;
const required = {
  id: new GraphQLNonNull(GraphQLID),
  int: new GraphQLNonNull(GraphQLInt),
  text: new GraphQLNonNull(GraphQLString),
};

const PhotoType = new GraphQLObjectType<Photo>({
  name: 'Photo',
  description: 'A picture on the wall.',
  fields: {
    id: { type: required.id },
    title: { type: required.text },
    url: {
      type: required.text,
      description: 'Never changes its content.',
      resolve: ({ file }) => `/uploads/${file}`,
    },
    width: { type: required.int },
    height: { type: required.int },
    bytes: { type: required.int },
    addedAt: { type: required.text, description: 'ISO 8601, UTC.' },
  },
});

/** The API of the wall. */
export function createSchema(store: Store, events: PubSub<Events>, room: Presence<null>): GraphQLSchema {
  const visitors = async (): Promise<number> => (await room.members('wall')).length;

  const query = new GraphQLObjectType({
    name: 'Query',
    fields: {
      photos: {
        type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(PhotoType))),
        description: 'The newest pictures, or those before a given one.',
        args: { first: { type: required.int, defaultValue: 60 }, before: { type: GraphQLID } },
        resolve: (_root, { first, before }) => store.list(Math.max(0, Math.min(first, MAX_PAGE)), before),
      },
      visitors: { type: required.int, description: 'Who is looking at the wall.', resolve: visitors },
    },
  });

  const mutation = new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      addPhoto: {
        type: new GraphQLNonNull(PhotoType),
        description: 'Adds a PNG, JPEG, GIF, WebP or AVIF picture of up to 10 MB.',
        args: { file: { type: new GraphQLNonNull(Upload) } },
        resolve: (_root, { file }) => addPhoto(store, events, file),
      },
    },
  });

  const subscription = new GraphQLObjectType({
    name: 'Subscription',
    fields: {
      photoAdded: {
        type: new GraphQLNonNull(PhotoType),
        subscribe: () => events.subscribe('photoAdded'),
        resolve: (photo: Photo) => photo,
      },
      visitors: {
        type: required.int,
        description: 'Counts a visitor, with all of its tabs, for as long as it is subscribed.',
        args: { id: { type: required.id } },
        subscribe: (_root, { id }: { id: string }) => {
          // The wall has no login: anyone may choose an id.
          if (!/^[\w-]{1,64}$/.test(id)) throw new GraphQLError('An id has 1 to 64 letters, digits, _ and -');
          const changes = room.during('wall', { id, data: null }, room.changes('wall'));
          // Many visitors who come at once cost each of them one count.
          return map(latest(changes, '250ms'), visitors);
        },
        resolve: (count) => count,
      },
    },
  });

  return new GraphQLSchema({ query, mutation, subscription });
}

/** Adds a picture and tells every open tab. Throws a PictureError for a file that is no picture. */
export async function addPhoto(store: Store, events: PubSub<Events>, file: UploadedFile): Promise<Photo> {
  const photo = await store.add(file.filename, await file.bytes());
  // The picture is stored even if Redis cannot be reached. `onError` reports that failure.
  await events.publish('photoAdded', photo).catch(() => undefined);
  return photo;
}
