import { createClient } from 'graphql-ws';

export interface Message {
  readonly id: string;
  readonly text: string;
  readonly picture: string | null;
  readonly createdAt: string;
  readonly author: { readonly name: string };
}

interface Result {
  readonly data?: unknown;
  readonly errors?: readonly { readonly message: string }[];
}

const FIELDS = '{ id text picture createdAt author { name } }';

export async function loadMessages(): Promise<readonly Message[]> {
  const { messages } = await send<{ messages: Message[] }>({ query: `{ messages ${FIELDS} }` });
  return messages;
}

export async function addMessage(form: FormData): Promise<void> {
  const picture = form.get('picture');
  const variables = { name: form.get('name'), text: form.get('text'), picture: null };
  const query = `mutation ($name: String!, $text: String!, $picture: Upload) {
    addMessage(name: $name, text: $text, picture: $picture) { id }
  }`;
  await send({ query, variables }, picture instanceof File && picture.size > 0 ? picture : undefined);
}

/** Calls `onMessage` for each new message. Calls `onConnected` again after each interruption. */
export function watchMessages(onMessage: (message: Message) => void, onConnected: () => void): void {
  const url = new URL('/graphql', location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  const client = createClient({
    url: url.href,
    retryAttempts: Number.POSITIVE_INFINITY,
    on: { connected: onConnected },
  });
  client.subscribe<{ messageAdded: Message }>(
    { query: `subscription { messageAdded ${FIELDS} }` },
    {
      next: ({ data }) => data && onMessage(data.messageAdded),
      error: (error) => console.error(error),
      complete: () => undefined,
    },
  );
}

/** Sends an operation; with a file, by the GraphQL multipart request specification. */
async function send<Data>(operation: object, picture?: File): Promise<Data> {
  const form = new FormData();
  form.set('operations', JSON.stringify(operation));
  form.set('map', JSON.stringify({ 0: ['variables.picture'] }));
  if (picture !== undefined) form.set('0', picture);
  const response = await fetch('/graphql', {
    method: 'POST',
    headers: picture === undefined ? { 'content-type': 'application/json' } : {},
    body: picture === undefined ? JSON.stringify(operation) : form,
  });
  const { data, errors }: Result = await response.json();
  if (errors !== undefined) throw new Error(errors.map(({ message }) => message).join('\n'));
  return data as Data;
}
