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

export async function addMessage(form: FormData, onProgress: (part: number) => void): Promise<void> {
  const picture = form.get('picture');
  const variables = { name: form.get('name'), text: form.get('text'), picture: null };
  const query = `mutation ($name: String!, $text: String!, $picture: Upload) {
    addMessage(name: $name, text: $text, picture: $picture) { id }
  }`;
  const operation = { query, variables };
  if (picture instanceof File && picture.size > 0) await sendFile(operation, picture, onProgress);
  else await send(operation);
}

/** Calls `onMessage` for each new message. Calls `onConnected` again after each interruption. */
export function watchMessages(onMessage: (message: Message) => void, onConnected: () => void): void {
  const url = new URL('/graphql', location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  const client = createClient({
    url: url.href,
    retryAttempts: Number.POSITIVE_INFINITY,
    // After a random time of up to 2 s, 4 s ... 30 s.
    retryWait: (retries) =>
      new Promise((resolve) => {
        setTimeout(resolve, Math.min(30_000, 2000 * 2 ** retries) * Math.random());
      }),
    // Also when the server cannot be reached. With a login: `event.code !== 4403`.
    shouldRetry: () => true,
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

async function send<Data>(operation: object): Promise<Data> {
  const response = await fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(operation),
  });
  return dataOf<Data>(await response.json());
}

/** Sends an operation by the GraphQL multipart request specification. XMLHttpRequest tells how much has been sent. */
function sendFile(operation: object, picture: File, onProgress: (part: number) => void): Promise<unknown> {
  const form = new FormData();
  form.set('operations', JSON.stringify(operation));
  form.set('map', JSON.stringify({ 0: ['variables.picture'] }));
  form.set('0', picture);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.upload.onprogress = ({ loaded, total }) => onProgress(loaded / total);
    request.onload = () => {
      try {
        resolve(dataOf(JSON.parse(request.responseText)));
      } catch (error) {
        reject(error);
      }
    };
    request.onerror = () => reject(new Error('The connection was lost'));
    request.open('POST', '/graphql');
    request.send(form);
  });
}

function dataOf<Data>({ data, errors }: Result): Data {
  if (errors !== undefined) throw new Error(errors.map(({ message }) => message).join('\n'));
  return data as Data;
}
